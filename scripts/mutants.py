"""Which small errors are possible in the books: every mutant of their headers, for scripts/mutate."""
import collections
import re

Token = collections.namedtuple("Token", "kind text begin end")
Mutant = collections.namedtuple("Mutant", "file line kind begin end replacement")

LEXEMES = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]*)\(.*?\)(?P=delimiter)" | (?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
      | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
      | (?P<mark>\.\.\.|<<=|>>=|->\*|::|->|\+\+|--|<<|[-+*/%&|^<>=!]=|&&|\|\||\S)""",
    re.VERBOSE | re.DOTALL)
PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
         "*": "/", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
NAMES = {"min": "max", "max": "min", "lower_bound": "upper_bound", "upper_bound": "lower_bound"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")": "(", "]": "[", "}": "{"}
QUALIFIERS = {"const", "noexcept", "override", "final", "mutable", "try", "else", "do"}
STATEMENT_KEYWORDS = {"return", "continue", "break"}


def tokens_of(text):
    """All tokens but white space, comments and preprocessor lines."""
    text = PREPROCESSOR.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    for match in LEXEMES.finditer(text):
        if match.lastgroup != "space" and match["space"] is None:
            kind = next(k for k in ("string", "char", "name", "number", "mark") if match[k] is not None)
            yield Token(kind, match[0], match.start(), match.end())


def partners(tokens):
    """For each bracket the index of the other one of its pair."""
    pairs, stack = {}, []
    for i, token in enumerate(tokens):
        if token.kind != "mark":
            continue
        if token.text in OPEN:
            stack.append(i)
        elif token.text in CLOSE:
            pairs[i] = stack.pop()
            pairs[pairs[i]] = i
    return pairs


def after_template(tokens, head):
    """The head of a declaration without `template <...>`."""
    while head and tokens[head[0]].text == "template":
        depth = 0
        for n, i in enumerate(head[1:], 2):
            depth += tokens[i].text.count("<") if tokens[i].text in ("<", "<<") else 0
            depth -= tokens[i].text.count(">") if tokens[i].text in (">", ">>") else 0
            if depth <= 0:
                break
        head = head[n:]
    return head


def bodies(tokens, pairs):
    """Ranges of tokens: functions' bodies, from brace to brace, with the constructor's initializers before them."""
    found, head, i = [], [], 0
    while i < len(tokens):
        text = tokens[i].text
        if text in ("(", "[") and tokens[i].kind == "mark":
            head.extend(range(i, pairs[i] + 1))
            i = pairs[i] + 1
            continue
        if text == "{" and tokens[i].kind == "mark":
            words = after_template(tokens, head)
            names = [tokens[h].text for h in words]
            first = next((n for n in names if n not in ("inline", "typedef", "friend", "constexpr", "static")), "")
            colon = next((h for h in words if tokens[h].text == ":" and tokens[h - 1].text in (")", "noexcept")), None)
            if "namespace" in names or first in ("class", "struct", "union"):
                pass  # functions are inside
            elif first == "enum" or ")" not in names:
                i = pairs[i] + 1  # enumerators, or the initializer of a variable
                continue
            elif colon is not None and tokens[i - 1].kind == "name" and tokens[i - 1].text not in QUALIFIERS:
                head.extend(range(i, pairs[i] + 1))  # `member_{...}` among a constructor's initializers
                i = pairs[i] + 1
                continue
            else:
                found.append((i if colon is None else colon, pairs[i]))
                i = pairs[i]
            head = []
        elif text in (";", "}"):
            head = []
        else:
            head.append(i)
        i += 1
    return found


def statement_end(tokens, pairs, i):
    """The index of the `;` that ends the statement at i, if it is a call, an assignment or an early exit; or None."""
    if tokens[i].text in STATEMENT_KEYWORDS:
        while tokens[i].text != ";":
            i = pairs[i] + 1 if i in pairs and tokens[i].text in OPEN else i + 1
        return i
    stepped = tokens[i].text in ("++", "--")
    i += 1 if stepped else 0
    while tokens[i].text == "*":
        i += 1
    if tokens[i].kind != "name" and tokens[i].text != "(":
        return None
    called = False
    while True:  # name, ::name, .name, ->name, [index], (arguments)
        called = False
        i = pairs[i] + 1 if tokens[i].text == "(" else i + 1
        while tokens[i].text in ("[", "("):
            called = tokens[i].text == "("
            i = pairs[i] + 1
        if tokens[i].text not in ("::", ".", "->"):
            break
        i += 1
        if tokens[i].kind != "name":
            return None
    if tokens[i].text in ("++", "--"):
        stepped = True
        i += 1
    if tokens[i].text == ";":
        return i if called or stepped else None
    if tokens[i].text not in ("=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=", "<<=", ">>="):
        return None
    while tokens[i].text != ";":
        i = pairs[i] + 1 if i in pairs and tokens[i].text in OPEN else i + 1
    return i


def mutants_of(file, text):
    """All changes that are possible in one header, in order."""
    tokens = list(tokens_of(text))
    pairs = partners(tokens)

    def spaced(i):
        return text[tokens[i].begin - 1].isspace() and text[tokens[i].end].isspace()

    def mutant(kind, begin, end, replacement):
        return Mutant(file, text.count("\n", 0, begin) + 1, kind, begin, end, replacement)

    def negated(first, last):  # the tokens in [first, last) as a condition
        begin, end = tokens[first].begin, tokens[last - 1].end
        marks = [t.text for t in tokens[first:last] if t.text in ("!", "==", "!=", "&&", "||")]
        if len(marks) != 1 or marks[0] in ("&&", "||"):  # else the operator's own mutant is the same
            yield mutant("condition", begin, end, f"!({text[begin:end]})")

    def is_last_return(i, end, brace):  # at the end of its function or lambda: no early exit
        if tokens[i].text != "return" or tokens[i - 1].text in (")", "else") or end + 1 != pairs[brace]:
            return False
        owner = pairs[brace - 1] - 1 if tokens[brace - 1].text == ")" else brace - 1
        return tokens[owner].text not in ("if", "for", "while", "switch", "else", "do", "constexpr")

    for first, last in bodies(tokens, pairs):
        i = first
        while i < last:
            token, before = tokens[i], tokens[i - 1].text
            if token.text == "static_assert":
                i = pairs[i + 1] + 1
                continue
            # operators
            if token.kind == "mark" and token.text in SWAPS and before not in ("operator", "template") and spaced(i):
                yield mutant("operator", token.begin, token.end, SWAPS[token.text])
            elif token.kind == "mark" and token.text in ("++", "--"):
                yield mutant("operator", token.begin, token.end, "--" if token.text == "++" else "++")
            elif token.kind == "mark" and token.text == "!":
                yield mutant("operator", token.begin, token.end, "")
            elif token.kind == "name" and token.text in NAMES and before == "::" and tokens[i - 2].text == "std":
                yield mutant("operator", token.begin, token.end, NAMES[token.text])
            # constants
            if token.kind == "number" and re.fullmatch(r"[\d']+", token.text) and before != "<":
                value = int(token.text.replace("'", ""))
                yield mutant("constant", token.begin, token.end, str({0: 1, 1: 0}.get(value, value + 1)))
            elif token.text in ("true", "false"):
                yield mutant("constant", token.begin, token.end, "false" if token.text == "true" else "true")
            # conditions
            if token.text in ("if", "while") and tokens[i + 1].text == "(":
                parts = [i + 1]  # `if (init; condition)`: the last part counts
                k = i + 2
                while k < pairs[i + 1]:
                    if tokens[k].text == ";":
                        parts.append(k)
                    k = pairs[k] + 1 if k in pairs else k + 1
                yield from negated(parts[-1] + 1, pairs[i + 1])
            elif token.text == "?" and token.kind == "mark":
                k = i - 1
                while tokens[k].text not in ("=", "(", "[", "{", ",", ";", "return", ":", "?", "+=", "-="):
                    k = pairs[k] - 1 if tokens[k].text in CLOSE and k in pairs else k - 1
                yield from negated(k + 1, i)
            # statements
            at_start = before in (";", "{", "}", "else", ":") or (
                before == ")" and tokens[pairs[i - 1] - 1].text in ("if", "for", "while", "constexpr"))
            enclosing = max(o for o, c in pairs.items() if o < i < c) if at_start else None
            if at_start and tokens[enclosing].text == "{":
                end = statement_end(tokens, pairs, i)
                if end is not None and not is_last_return(i, end, enclosing):
                    yield mutant("statement", token.begin, tokens[end].begin, "")
            i += 1


def all_mutants(include):
    """All possible mutants, in order, as far as they are of the books."""
    folder = include / "rollback"
    files = [folder / "books.hpp", folder / "window_guard.hpp", *sorted(folder.glob("detail/*.hpp"))]
    files = [f for f in files if not f.name.startswith("dsv4_")]
    return [m for f in files for m in mutants_of(f.relative_to(include.parent).as_posix(), f.read_text())]


def shown(mutant, text):
    """The lines that change, without and with the change, each as one line."""
    begin = text.rfind("\n", 0, mutant.begin) + 1
    end = text.find("\n", mutant.end)
    new = text[begin:mutant.begin] + mutant.replacement + text[mutant.end:end]
    lines = []
    for line in (text[begin:end], new):
        line = re.sub(r"\s+", " ", line).strip()
        lines.append(line if len(line) <= 160 else line[:157] + "...")
    return lines
