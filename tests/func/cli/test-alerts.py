#!/usr/bin/env python3
"""test-alerts.py RULES: the alert rules are what Prometheus takes: by its own tool where that is, else as
far as can be seen without it."""
import re
import shutil
import subprocess
import sys

promtool = shutil.which("promtool")
if promtool:
    sys.exit(subprocess.run([promtool, "check", "rules", sys.argv[1]]).returncode)
try:
    import yaml
except ImportError:
    print("neither promtool nor a reader of YAML here")
    sys.exit(77)

with open(sys.argv[1]) as file:
    groups = yaml.safe_load(file)["groups"]
names = set()
for group in groups:
    assert set(group) == {"name", "rules"}, group
    for rule in group["rules"]:
        assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}, rule
        assert re.fullmatch("[A-Z][A-Za-z]+", rule["alert"]) and rule["alert"] not in names, rule
        names.add(rule["alert"])
        assert re.fullmatch("[0-9]+[smh]", rule["for"]), rule
        assert rule["labels"]["severity"] in ("warning", "critical"), rule
        expr = rule["expr"]
        for opening, closing in ("()", "[]", "{}"):
            assert expr.count(opening) == expr.count(closing), expr
        assert re.search(r"(==|>|<) [0-9.]+$", expr), expr
        text = " ".join(rule["annotations"].values())
        assert text.count("{{") == text.count("}}"), text
        for label in re.findall(r"\$labels\.([a-z]+)", text):
            by = re.search(r"by \(([^)]*)\)", expr)
            assert label == "instance" or not by or label in by.group(1).split(", "), rule
assert len(names) >= 4, names
print(len(names), "alerts")
