"""A page as a tree, read with the parser of the standard library."""

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


class Node:
    """An element: its tag, attributes, and children (elements and texts)."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    def all(self, tag, kind=""):
        """Return the elements inside with a tag and a class, in order."""
        found = []
        for one in self.children:
            if isinstance(one, Node):
                if one.tag == tag and (not kind or kind in one.attributes.get("class", "").split()):
                    found.append(one)
                found += one.all(tag, kind)
        return found

    def one(self, tag, kind=""):
        return self.all(tag, kind)[0]

    def text(self, *skip):
        """Return the text inside with single blanks, without elements of some tags."""
        parts = [
            one
            if isinstance(one, str)
            else f" {one.text(*skip)} "
            if one.tag == "small"
            else one.text(*skip)
            for one in self.children
            if isinstance(one, str) or one.tag not in skip
        ]
        return " ".join("".join(parts).split())

    def cells(self):
        """Return the texts of the cells of a table, row by row."""
        rows = [one for part in self.all("tbody") + self.all("tfoot") for one in part.all("tr")]
        return [[one.text("svg") for one in row.children if isinstance(one, Node)] for row in rows]


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Node("page", {})]

    def handle_starttag(self, tag, attributes):
        node = Node(tag, {name: value or "" for name, value in attributes})
        self.open[-1].children.append(node)
        if tag not in VOID and not self.get_starttag_text().endswith("/>"):
            self.open.append(node)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"<{self.open[-1].tag}> is ended by </{tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def read(page):
    """Return the tree of a page; fail if an element is not closed where it should be."""
    reader = _Reader()
    reader.feed(page)
    assert len(reader.open) == 1
    return reader.open[0]
