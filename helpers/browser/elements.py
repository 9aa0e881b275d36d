"""The list of elements that a policy may act on, made from BrowserGym's accessibility tree."""

from collections.abc import Iterator
from typing import Any

from browsergym.utils.obs import IGNORED_AXTREE_ROLES

Node = dict[str, Any]  # one node of the accessibility tree, as Chromium's DevTools name its fields
Properties = dict[str, dict[str, Any]]  # bid -> {"bbox": ..., "clickable": ..., ...}


def list_elements(tree: dict[str, Any], properties: Properties, focused: str) -> list[Node]:
    """The elements in the order of the tree's text, as fields of `helpers.browser.models.Element`:
    those with a role or a name of their own, and those that listen to clicks.

    ``tree`` comes from BrowserGym's ``extract_merged_axtree``, ``properties`` from its
    ``extract_dom_extra_properties``; ``focused`` is the bid of the focused element, or ""."""
    found: dict[str, Node] = {}
    nodes = {node["nodeId"]: node for node in tree["nodes"]}
    for node in _in_order(nodes, tree["nodes"][0]["nodeId"]):
        bid = node.get("browsergym_id")
        if bid is None or bid in found:
            continue
        role = node["role"]["value"]
        name = _name(node)
        seen = properties.get(bid, {})
        plain = role == "generic" or role in IGNORED_AXTREE_ROLES
        if plain and not name and not seen.get("clickable"):
            continue
        found[bid] = _element(bid, role, name, _value(node), seen, focused)
        if not name:
            found[bid]["text"] = _first_text(nodes, node)
    for bid, seen in properties.items():
        # Not in the tree, for it has neither role nor name, yet it listens to clicks.
        if bid not in found and seen["clickable"] and seen["bbox"]:
            found[bid] = _element(bid, "generic", "", "", seen, focused)
    return list(found.values())


def _in_order(nodes: dict[str, Node], top: str) -> Iterator[Node]:
    """The node ``top`` and those below it as the tree's text has them: parents first, children from
    left to right."""
    to_visit = [top]
    visited = set()
    while to_visit:
        node_id = to_visit.pop()
        if node_id in visited or node_id not in nodes:
            continue
        visited.add(node_id)
        to_visit.extend(reversed(nodes[node_id]["childIds"]))
        yield nodes[node_id]


def _first_text(nodes: dict[str, Node], node: Node) -> str:
    """The first text inside of a node, as the tree's text has it; "" where there is none."""
    inside = _in_order(nodes, node["nodeId"])
    texts = (_name(inner) for inner in inside if inner["role"]["value"] == "StaticText")
    return next(filter(None, texts), "")


def _name(node: Node) -> str:
    return str(node.get("name", {}).get("value", "")).strip()


def _value(node: Node) -> str:
    """What a field holds, or whether a box is checked or an option selected ("true", "false")."""
    states = {p["name"]: p.get("value", {}).get("value") for p in node.get("properties", [])}
    state = states.get("checked", states.get("selected", ""))
    value = node.get("value", {}).get("value", state)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _element(
    bid: str, role: str, name: str, value: str, seen: dict[str, Any], focused: str
) -> dict[str, Any]:
    box = [round(number, 1) for number in seen.get("bbox") or ()]
    return {
        "bid": bid,
        "role": role,
        "name": name,
        "value": value,
        "focused": bid == focused,
        "box": box or None,
        "clickable": bool(seen.get("clickable")),
        "text": "",
    }
