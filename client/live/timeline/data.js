/*
 * data.js: the trace as the page has it, what the user looks at, and where on the screen that is.
 *
 * Included into one function with draw.js and use.js, in this order; see page.html.
 */
const $ = id => document.getElementById(id);
const trace = JSON.parse($("trace").textContent);
const powers = JSON.parse($("power").textContent);
const STATES = ["waiting", "running", "done", "abandoned", "stopped", "unsure"];
/* By number: what holds a job, and whether its SMs are the very ones. */
const HELD = trace.held.map(h => h.name), EXACT = trace.held.map(h => h.exact);
const jobs = JSON.parse($("jobs").textContent).map(j => ({
	id: j[0] + "." + j[1], task: j[2], gpu: j[3], state: j[4], held: j[5], sms: j[6], release: j[7],
	granted: j[8], finished: j[9], deadline: j[10], predicted: j[11], launches: j[12], requested: j[13],
	late: j[10] !== null && j[9] !== null && j[9] > j[10],
	n: j[6].reduce((sum, v, i) => i % 2 ? sum + v : sum, 0),
}));
/* A row for each kernel of a task and each kind of copy: when the program issued them. */
const ops = JSON.parse($("ops").textContent).map(o => ({task: o[0], name: o[1], times: o[2].sort((a, b) => a - b)}));
const OPS_MAX = 60; /* rows that are drawn: those with the most operations */
const from = j => j.release !== null && (j.granted === null || j.release < j.granted) ? j.release : j.granted;
jobs.sort((a, b) => from(a) - from(b));

/* Each set of neighbouring SMs of a GPU has a number, so that what is drawn can be counted. */
const stripes = [], number_of = new Map();
for (const j of jobs) {
	j.stripes = [];
	for (let i = 0; i < j.sms.length; i += 2) {
		const key = j.gpu + ":" + j.sms[i] + ":" + j.sms[i + 1];
		if (!number_of.has(key)) {
			number_of.set(key, stripes.length);
			stripes.push({gpu: j.gpu, first: j.sms[i], n: j.sms[i + 1], top: 0, h: 0});
		}
		j.stripes.push(number_of.get(key));
	}
}
/* The longest from release to end or deadline: how far left of the view jobs may begin that reach
 * into it. */
const until = j => Math.max(j.finished === null ? trace.end : j.finished, j.deadline || 0);
const reach = jobs.reduce((m, j) => from(j) === null ? m : Math.max(m, until(j) - from(j)), 0);
function first_in_view() {
	let lo = 0, hi = jobs.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (from(jobs[mid]) < view[0] - reach) lo = mid + 1; else hi = mid;
	}
	return lo;
}

/* Eight colours that also the colour-blind tell apart, times six patterns. */
const HUES = [
	["#2f7ed8", "#5aa2f2"], ["#e08a00", "#f2ac3c"], ["#14946a", "#2fc595"], ["#b8479e", "#de7cc6"],
	["#7a5af0", "#a48cff"], ["#8a7a00", "#c9b93a"], ["#c4502b", "#f08560"], ["#3d8f9e", "#6cc3d2"],
];
const PATTERNS = ["", "M-2 10L10 -2M-2 2L2 -2M6 10L10 6", "M4 4h.01M0 0h.01M8 8h.01M0 8h.01M8 0h.01", "M0 4H8",
	"M4 0V8", "M-2 10L10 -2M-2 2L2 -2M6 10L10 6M-2 -2L10 10M6 -2L10 2M-2 6L2 10"];
const dark = () => document.documentElement.classList.contains("dark");
const hue = t => HUES[t % HUES.length][dark() ? 1 : 0];

const LEFT = 118, RIGHT = 14, TOP = 30, ROW = 27, OP_ROW = 15, OVER = 46;
const end = Math.max(trace.end, 1000);
/* A little air on both sides; what began before the trace may reach further back. */
const first = jobs.reduce((m, j) => from(j) !== null ? Math.min(m, from(j)) : m, 0);
const limits = [Math.max(first, -end), end];
const air = (limits[1] - limits[0]) * .01;
limits[0] -= air; limits[1] += air;
let view = limits.slice(), off = new Set(), pinned = null, hovered = null, cursor = null, mark = null;
let width = 0, rows = null, height = 0;
let found = null; /* what is looked for: {tasks: Set, jobs: [index]} */
/* Tasks are listed by name, 2 before 10. */
const by_name = trace.tasks.map((t, i) => i).sort((a, b) => trace.tasks[a].name.localeCompare(trace.tasks[b].name, "en", {numeric: true}));
const listed = () => by_name.filter(i => found === null || found.tasks.has(i));
const is_dim = t => hovered !== null && hovered !== t || hovered === null && found !== null && !found.tasks.has(t);

const esc = s => String(s).replace(/[&<>"]/g, c => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);
const x = t => LEFT + (t - view[0]) / (view[1] - view[0]) * (width - LEFT - RIGHT);
const t_of = px => view[0] + (px - LEFT) / (width - LEFT - RIGHT) * (view[1] - view[0]);

/* "12.3 ms", with as many digits as the step @step needs, in a unit that suits times up to @most. */
function time(ns, step, most) {
	const units = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
	const size = step || Math.abs(ns), u = units.find(u => size >= u[0] || most >= 10 * u[0]) || units[3];
	let digits = step ? Math.max(0, Math.ceil(-Math.log10(step / u[0]) - 1e-9)) : size / u[0] < 100 && u[0] > 1 ? 2 : 1;
	return (ns / u[0]).toFixed(u[0] === 1 ? 0 : digits) + " " + u[1];
}
const wall = ns => new Date(trace.wall_ms + ns / 1e6);

/* Of the tasks that are listed, in their order. */
function listed_ops() {
	const place = new Map(listed().map((t, i) => [t, i]));
	const all = ops.filter(o => place.has(o.task));
	all.sort((a, b) => b.times.length - a.times.length);
	return all.slice(0, OPS_MAX).sort((a, b) => place.get(a.task) - place.get(b.task) || b.times.length - a.times.length);
}

/* Where things stand: a panel for each GPU, a row for each task, one for each of their kernels. */
function layout() {
	width = $("chart").clientWidth || 1000;
	const room = Math.max(300, window.innerHeight - $("chart").getBoundingClientRect().top - OVER - 66);
	const list = listed(), kernels = listed_ops(), tasks = TOP + 14 + list.length * ROW + kernels.length * OP_ROW;
	const busy = new Set(stripes.map(p => p.gpu)), n = trace.gpus.filter(g => busy.has(g.index)).length || trace.gpus.length;
	const low = n < trace.gpus.length ? 56 : 90, idle = (trace.gpus.length - n) * (low + 34);
	const each = Math.min(260, Math.max(90, (room - tasks - idle) / Math.max(1, n) - 34));
	let y = TOP;
	rows = {gpu: new Map(), task: [], ops: []};
	for (const g of trace.gpus) {
		const watts = powers.some(p => p[1] === g.index);
		const high = busy.size && !busy.has(g.index) ? low : each; // a GPU without jobs needs no room
		rows.gpu.set(g.index, {g, top: y + 20, h: high - (watts ? 26 : 0), watts: watts ? y + 20 + high - 22 : 0});
		y += high + 30;
	}
	y += 4;
	list.forEach((t, i) => { rows.task[t] = y + i * ROW; });
	y += list.length * ROW + (kernels.length ? 20 : 0);
	rows.ops = kernels.map((o, i) => ({o, top: y + i * OP_ROW}));
	height = Math.max(120, y + kernels.length * OP_ROW + 6);
	for (const p of stripes) {
		const r = rows.gpu.get(p.gpu);
		p.h = r ? r.h * p.n / r.g.n_sms : 0;
		p.top = r ? r.top + r.h * (1 - p.first / r.g.n_sms) - p.h : 0;
	}
	$("chart").setAttribute("height", height);
	$("chart").setAttribute("viewBox", `0 0 ${width} ${height}`);
	$("over").setAttribute("height", OVER);
	$("over").setAttribute("viewBox", `0 0 ${width} ${OVER}`);
}

