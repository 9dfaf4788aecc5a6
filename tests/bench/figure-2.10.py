#!/usr/bin/env python3
"""figure-2.10.py SBEETCTL DATA [SETS]: Figure 2.10 of the dissertation: the energy of stgm and sbeet over the
number of tasks, with periods of 100 to 500 ms, where stgm misses nothing and does not fall back to rm. One GPU of 8 SMs, D = T, 15 s."""
import json
import random
import subprocess
import sys
import tempfile

sbeetctl, data = sys.argv[1:3]
sets = int(sys.argv[3]) if len(sys.argv) > 3 else 30
apps = ["mmul", "stereodisparity", "hotspot", "dxtc", "bfs", "mmul2"]


def simulate(tasks):
    scenario = {
        "duration": "15s",
        "gpus": [{"name": "a", "type": "rtx3070", "sms": 46, "limit": 8, "static_w": 46, "idle_w_per_sm": 0.445}],
        "import": [{"wcet": data + "/wcet_profiles.csv", "apps": data + "/app_params.csv"}],
        "tasks": tasks,
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(scenario, f)
        f.flush()
        out = subprocess.run([sbeetctl, "simulate", "-p", "stgm", "-p", "sbeet", "-p", "rm", "--json=short", f.name],
                             check=True, capture_output=True, text=True).stdout
    return json.loads(out)["runs"]


print("tasks sets stgm_j sbeet_j less_percent sbeet_misses sbeet_late_sets")
for n in range(2, 9):
    chosen = random.Random(n)
    energy = {"stgm": 0.0, "sbeet": 0.0}
    kept = tried = late = missed = 0
    while kept < sets and tried < 50 * sets:
        tried += 1
        tasks = []
        for i in range(n):
            period = chosen.randint(100, 500)
            tasks.append({"name": f"t{i}", "profile": chosen.choice(apps), "period": f"{period}ms",
                          "deadline": f"{period}ms"})
        stgm, sbeet, rm = simulate(tasks)
        if stgm["missed"] > 0 or abs(stgm["energy_j"] - rm["energy_j"]) < 1e-6:
            continue
        kept += 1
        energy["stgm"] += stgm["energy_j"]
        energy["sbeet"] += sbeet["energy_j"]
        missed += sbeet["missed"]
        late += sbeet["missed"] > 0
    if kept:
        less = 100 * (1 - energy["sbeet"] / energy["stgm"])
        print(f"{n} {kept} {energy['stgm'] / kept:.1f} {energy['sbeet'] / kept:.1f} {less:.1f} {missed} {late}",
              flush=True)
    else:
        print(f"{n} 0 - - - - -", flush=True)
