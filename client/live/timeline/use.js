/*
 * use.js: what a user does: zoom, move, find, point, press keys; and what is told of a job.
 */
/* With the next frame; a page in the background gets none, so at the latest soon. */
let queued = 0;
function redraw_now() {
	if (!queued) return;
	clearTimeout(queued);
	queued = 0;
	draw();
}
function redraw() {
	if (queued) return;
	queued = setTimeout(redraw_now, 100);
	requestAnimationFrame(redraw_now);
}

let saving = 0;
function show(a, b) {
	const least = 1000, most = limits[1] - limits[0];
	let span = Math.min(most, Math.max(least, b - a)), mid = (a + b) / 2;
	a = Math.min(Math.max(mid - span / 2, limits[0]), limits[1] - span);
	view = [a, a + span];
	clearTimeout(saving);
	saving = setTimeout(() => { try { history.replaceState(null, "", "#v=" + Math.round(view[0]) + "," + Math.round(view[1])); } catch (e) { /* a page without an address */ } }, 200);
	redraw();
}
function zoom(factor, at) {
	if (at === undefined) at = (view[0] + view[1]) / 2;
	show(at + (view[0] - at) * factor, at + (view[1] - at) * factor);
}
function pan(share) { const d = (view[1] - view[0]) * share; show(view[0] + d, view[1] + d); }
function fit() { show(limits[0], limits[1]); }

/* To the next job of @list, which is in the order of @at(job): behind the one whose details are
 * shown, if that is one of them, else behind the middle of the view. */
function go(step, list, at) {
	const shown = list.indexOf(pinned), mid = (view[0] + view[1]) / 2, eps = (view[1] - view[0]) / 1e6 + 1;
	list = list.filter(i => !off.has(jobs[i].task));
	const here = shown >= 0 ? at(jobs[pinned]) : mid;
	const i = step > 0 ? list.find(i => at(jobs[i]) > here + (shown >= 0 ? 0 : eps)) :
		list.filter(i => at(jobs[i]) < here - (shown >= 0 ? 0 : eps)).pop();
	if (i === undefined) return;
	const j = jobs[i], end = j.finished === null ? trace.end : j.finished;
	const half = Math.min(Math.min(view[1] - view[0], Math.max(4 * (end - from(j)), 1000)) / 2, at(j) - limits[0], limits[1] - at(j));
	show(at(j) - half, at(j) + half);
	pin(i);
}
const missed = jobs.map((j, i) => i).filter(i => jobs[i].late).sort((a, b) => jobs[a].deadline - jobs[b].deadline);
const miss = step => go(step, missed, j => j.deadline);

/* Tasks with a part of their name, or a job by its number, while it is typed. */
function find(text) {
	const job = /^\d+\.\d+$/.test(text), tasks = new Set();
	trace.tasks.forEach((t, i) => { if (!job && t.name.toLowerCase().includes(text.toLowerCase())) tasks.add(i); });
	const list = jobs.map((j, i) => i).filter(i => from(jobs[i]) !== null && (job ? jobs[i].id === text : tasks.has(jobs[i].task)));
	if (job) for (const i of list) tasks.add(jobs[i].task);
	found = text && list.length ? {tasks, jobs: list} : null;
	$("find").classList.toggle("none", text !== "" && !found);
	if (job && found) { pinned = null; go(from(jobs[list[0]]) > (view[0] + view[1]) / 2 ? 1 : -1, list, from); }
	legend();
	layout();
	redraw();
}
const find_next = step => { if (found) go(step, found.jobs, from); };

function details(j) {
	const t = trace.tasks[j.task], runs = STATES[j.state] === "running", row = (a, b, c) => `<tr><td>${a}</td><td class="${c || ""}">${b}</td></tr>`;
	const list = [];
	for (let i = 0; i < j.sms.length; i += 2) list.push(j.sms[i + 1] > 1 ? j.sms[i] + "\u2013" + (j.sms[i] + j.sms[i + 1] - 1) : j.sms[i]);
	let s = `<h2>${esc(t.name)} <span style="font-weight:400">job ${j.id}</span></h2><table>` +
		row("state", STATES[j.state] + (runs ? " when the recording ended" : "")) + row("GPU", j.gpu);
	if (j.granted !== null) {
		s += row("SMs", (EXACT[j.held] ? list.join(", ") + " (" + j.n + ")" : "any " + j.n) + ", " + HELD[j.held]);
		if (j.release !== null) s += row("started late", time(j.requested - j.release)) + row("waited", time(Math.max(0, j.granted - j.requested)));
		if (j.finished !== null) s += row(runs ? "has run" : "ran", time(j.finished - j.granted) + (j.launches ? ", " + j.launches + " launches" : ""));
	}
	if (j.release !== null && j.finished !== null && !runs) s += row("response", time(j.finished - j.release));
	if (j.deadline !== null && j.finished !== null && (!runs || j.late)) s += row("deadline", time(Math.abs(j.deadline - j.finished)) + (j.late ? " late" : " to spare"), j.late ? "bad" : "");
	if (j.granted !== null) s += row("granted", wall(j.granted).toISOString().replace("T", " ").replace("Z", " UTC"));
	return s + "</table>";
}
/* What GPU @gpu did in the column at @px. */
function average(gpu, px) {
	const c = averages.get(gpu), k = c ? Math.min(c.n - 1, Math.max(0, Math.floor((px - LEFT) / (width - LEFT - RIGHT) * c.n))) : 0;
	if (!c) return "";
	const span = (view[1] - view[0]) / c.n, rest = rows.gpu.get(gpu).g.n_sms;
	let s = `<h2>GPU ${gpu} <span style="font-weight:400">${time(span)} at ${time(view[0] + k * span, span, Math.max(-view[0], view[1]))}</span></h2><table>`, busy = 0;
	by_name.forEach(i => {
		const sms = c.sms[i * c.n + k];
		busy += sms;
		if (sms > 0) s += `<tr><td>${esc(trace.tasks[i].name)}</td><td>${sms.toFixed(1)} SMs</td></tr>`;
	});
	s += `<tr><td>free</td><td>${Math.max(0, rest - busy).toFixed(1)} SMs</td></tr>`;
	return s + (c.missed[k] ? `<tr><td>deadlines</td><td class="bad">${c.missed[k]} missed</td></tr>` : "") + "</table>";
}
function tip(i, px, py) {
	if (i === null) $("tip").style.display = "none";
	else show_tip(details(jobs[i]), px, py);
}
function show_tip(html, px, py) {
	const e = $("tip");
	e.innerHTML = html;
	e.classList.toggle("pin", pinned !== null);
	e.style.display = "block";
	const r = e.getBoundingClientRect();
	e.style.left = Math.max(4, Math.min(px + 16, window.innerWidth - r.width - 8)) + "px";
	e.style.top = Math.max(4, Math.min(py + 14, window.innerHeight - r.height - 8)) + "px";
}
function pin(i) {
	const box = $("chart").getBoundingClientRect();
	pinned = i;
	tip(i, box.left + box.width / 2 + 20, box.top + 60);
}

function legend() {
	$("legend").innerHTML = listed().map(i => [trace.tasks[i], i]).map(([t, i]) => `<button class="chip${off.has(i) ? " off" : ""}" data-t="${i}" aria-pressed="${!off.has(i)}">` +
		`<svg width="26" height="16"><defs>${pattern("l", i)}</defs>` +
		`<rect x=".5" y=".5" width="25" height="15" fill="url(#l${i})" stroke="${hue(i)}"/></svg>${esc(t.name)} ` +
		`<small>${t.done} jobs${t.max_response ? ", at most " + time(t.max_response) : ""}</small>` +
		(t.missed ? `<small class="bad">${t.missed} late</small>` : "") + "</button>").join("");
}
function facts() {
	const done = trace.tasks.reduce((s, t) => s + t.done, 0), late = trace.tasks.reduce((s, t) => s + t.missed, 0);
	document.title = trace.title + " \u2013 sbeet timeline";
	$("facts").innerHTML = `<b>${esc(trace.title)}</b> &middot; ${wall(0).toISOString().slice(0, 19).replace("T", " ")} UTC &middot; ${time(trace.end)} &middot; ` +
		`policy ${esc(trace.policy)} &middot; ${done} jobs, <b class="${late ? "bad" : ""}">${late} late</b>` +
		(trace.lost ? ` &middot; <b class="bad">${trace.lost} events lost</b>` : "");
	$("b-next").disabled = $("b-prev").disabled = !missed.length;
}
function theme() {
	document.documentElement.classList.toggle("dark");
	legend();
	redraw();
}

const job_at = e => { const t = e.target.closest ? e.target.closest("[data-i]") : null; return t ? +t.dataset.i : null; };
const offset = e => e.clientX - $("chart").getBoundingClientRect().left;
let drag = null;
$("chart").addEventListener("wheel", e => {
	e.preventDefault();
	if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / width);
	else zoom(Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * .006), t_of(offset(e)));
}, {passive: false});
$("chart").addEventListener("pointerdown", e => {
	if (e.button !== 0) return;
	drag = {x: offset(e), view: view.slice(), moved: false, mark: e.shiftKey, job: job_at(e)};
	$("chart").setPointerCapture(e.pointerId);
});
$("chart").addEventListener("pointermove", e => {
	cursor = offset(e);
	if (drag) {
		drag.moved = drag.moved || Math.abs(cursor - drag.x) > 3;
		if (drag.mark) mark = [drag.x, cursor];
		else if (drag.moved) {
			const d = (drag.x - cursor) / (width - LEFT - RIGHT) * (drag.view[1] - drag.view[0]);
			$("chart").classList.add("drag");
			show(drag.view[0] + d, drag.view[1] + d);
		}
	} else if (pinned === null) {
		const el = document.elementFromPoint(e.clientX, e.clientY);
		if (el && el.classList.contains("average")) show_tip(average(+el.dataset.gpu, cursor), e.clientX, e.clientY);
		else tip(el ? job_at({target: el}) : null, e.clientX, e.clientY);
	}
	if (drag) redraw(); else move_cursor();
});
$("chart").addEventListener("pointerup", e => {
	if (!drag) return;
	if (drag.mark && mark && Math.abs(mark[1] - mark[0]) > 4) show(t_of(Math.min(...mark)), t_of(Math.max(...mark)));
	else if (!drag.moved) { pinned = drag.job; tip(pinned, e.clientX, e.clientY); }
	drag = mark = null;
	$("chart").classList.remove("drag");
	redraw();
});
$("chart").addEventListener("pointerleave", () => { cursor = null; if (pinned === null) tip(null); move_cursor(); });
$("chart").addEventListener("dblclick", e => {
	const i = job_at({target: document.elementFromPoint(e.clientX, e.clientY) || e.target});
	if (i === null || jobs[i].finished === null) { zoom(.5, t_of(offset(e))); return; }
	const a = from(jobs[i]), b = Math.max(jobs[i].finished, jobs[i].deadline || 0), d = (b - a) * .15;
	show(a - d, b + d);
});
let brush = false;
const over_to = e => {
	const t = limits[0] + (offset(e) - LEFT) / (width - LEFT - RIGHT) * (limits[1] - limits[0]), h = (view[1] - view[0]) / 2;
	show(t - h, t + h);
};
$("over").addEventListener("pointerdown", e => { brush = true; $("over").setPointerCapture(e.pointerId); over_to(e); });
$("over").addEventListener("pointermove", e => { if (brush) over_to(e); });
$("over").addEventListener("pointerup", () => { brush = false; });
$("legend").addEventListener("click", e => {
	const b = e.target.closest(".chip");
	if (!b) return;
	const i = +b.dataset.t;
	if (e.shiftKey) {
		const alone = off.size === trace.tasks.length - 1 && !off.has(i);
		off = new Set(alone ? [] : trace.tasks.map((t, k) => k).filter(k => k !== i));
	} else if (!off.delete(i)) off.add(i);
	legend();
	redraw();
});
$("legend").addEventListener("pointerover", e => { const b = e.target.closest(".chip"); hovered = b ? +b.dataset.t : null; redraw(); });
$("legend").addEventListener("pointerleave", () => { hovered = null; redraw(); });
const keys = {
	"+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1 / .6), "_": () => zoom(1 / .6),
	"ArrowUp": () => zoom(.6), "ArrowDown": () => zoom(1 / .6), "ArrowLeft": () => pan(-.2), "ArrowRight": () => pan(.2),
	"PageUp": () => pan(-.9), "PageDown": () => pan(.9), "0": fit, "Home": fit, "n": () => miss(1), "p": () => miss(-1),
	"t": theme, "?": () => $("help").showModal(), "Escape": () => { pinned = null; tip(null); }, "/": () => $("find").select(),
};
$("find").addEventListener("input", () => find($("find").value.trim()));
$("find").addEventListener("keydown", e => {
	if (e.key === "Enter") find_next(e.shiftKey ? -1 : 1);
	if (e.key === "Escape") { $("find").value = ""; find(""); $("find").blur(); keys.Escape(); }
});
window.addEventListener("keydown", e => {
	const act = keys[e.key];
	if (!act || e.target === $("find") || e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
	e.preventDefault();
	act();
});
$("b-in").onclick = () => zoom(.6);
$("b-out").onclick = () => zoom(1 / .6);
$("b-fit").onclick = fit;
$("b-next").onclick = () => miss(1);
$("b-prev").onclick = () => miss(-1);
$("b-theme").onclick = theme;
$("b-help").onclick = () => $("help").showModal();
$("b-close").onclick = () => $("help").close();
function from_address() {
	const v = /[#&]v=(-?\d+),(-?\d+)/.exec(location.hash);
	if (v && +v[1] < +v[2]) show(+v[1], +v[2]);
}
window.addEventListener("hashchange", from_address);
window.addEventListener("resize", () => { bins = null; layout(); redraw(); });
if (window.matchMedia("(prefers-color-scheme: dark)").matches || /[#&]dark/.test(location.hash)) document.documentElement.classList.add("dark");
facts();
legend();
layout();
from_address();
draw();
