#!/usr/bin/env python3
"""test-alerts.py RULES CATALOG SBEETD: the alert rules are what Prometheus takes, by its own tool where that
is, and ask for metrics that sbeetd serves; messages of the journal that they name are there."""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

promtool = shutil.which("promtool")
if promtool:
    subprocess.run([promtool, "check", "rules", sys.argv[1]], check=True)
try:
    import yaml
except ImportError:
    print("neither promtool nor a reader of YAML here")
    sys.exit(77)



def fetch(path):
    """What is served at the socket, as soon as it is there."""
    for _ in range(600):
        with socket.socket(socket.AF_UNIX) as s:
            try:
                s.connect(path)
            except OSError:
                time.sleep(0.1)
                continue
            s.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            with s.makefile() as file:
                return file.read()
    sys.exit("sbeetd serves no metrics")


def served_names(sbeetd):
    """Names that a query may have, of all that sbeetd serves."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "metrics.sock")
        daemon = subprocess.Popen([sbeetd, "--gpus", "8", "--metrics", "unix:" + path],
                                  env={**os.environ, "SBEET_RUNTIME_DIR": folder}, stderr=subprocess.DEVNULL)
        try:
            text = fetch(path)
        finally:
            daemon.terminate()
            daemon.wait()
    ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "gauge": [""], "info": ["_info"]}
    return {name + end for name, kind in re.findall("(?m)^# TYPE ([a-z_]+) ([a-z]+)$", text) for end in ends[kind]}


with open(sys.argv[2]) as file:
    messages = set(re.findall("(?m)^-- ([0-9a-f]{32})$", file.read()))
served = served_names(sys.argv[3])
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
        for name in re.findall("sbeet_[a-z_]+", expr):
            assert name in served, f"no metric {name} is served"
        text = " ".join(rule["annotations"].values())
        for number in re.findall("MESSAGE_ID=([0-9a-z]+)", text):
            assert number in messages, f"no message {number} is in the catalog"
        assert text.count("{{") == text.count("}}"), text
        for label in re.findall(r"\$labels\.([a-z]+)", text):
            by = re.search(r"by \(([^)]*)\)", expr)
            assert label == "instance" or not by or label in by.group(1).split(", "), rule
assert len(names) >= 4, names
print(len(names), "alerts")
