/*
 * draw.js: the pictures: axis, a panel for each GPU, a row for each task, and the whole below them.
 * Text of SVG, drawn anew with each view; nothing here changes what is looked at.
 */
function pattern(prefix, i) {
	const p = PATTERNS[i % PATTERNS.length], c = hue(i);
	return `<pattern id="${prefix}${i}" width="8" height="8" patternUnits="userSpaceOnUse">` +
		`<rect width="8" height="8" fill="${c}" fill-opacity="${dark() ? .62 : .5}"/>` +
		(p ? `<path d="${p}" stroke="${c}" stroke-width="${i % PATTERNS.length === 2 ? 2.4 : 1.5}" stroke-linecap="round" fill="none"/>` : "") +
		"</pattern>";
}
function patterns(prefix) {
	return "<defs>" + trace.tasks.map((t, i) => pattern(prefix, i)).join("") + `<clipPath id="${prefix}clip"><rect x="${LEFT}" y="0" width="${Math.max(0, width - LEFT - RIGHT)}" height="${height}"/></clipPath></defs>`;
}

function nice(range, wanted) {
	const raw = range / wanted, p = Math.pow(10, Math.floor(Math.log10(raw)));
	return p * [1, 2, 5, 10].find(m => m * p >= raw);
}

function axis() {
	const step = nice(view[1] - view[0], Math.max(3, (width - LEFT - RIGHT) / 110)), most = Math.max(-view[0], view[1]);
	let s = "";
	for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
		const px = x(t).toFixed(1), text = time(Math.abs(t) < step / 2 ? 0 : t, step, most);
		s += `<path d="M${px} ${TOP - 6}V${height - 4}" stroke="var(--grid)"/>`;
		if (+px + text.length * 3.2 < width - 4) s += `<text class="soft" x="${px}" y="${TOP - 11}" text-anchor="middle">${text}</text>`;
	}
	return s;
}

function panels(crowded) {
	let s = "";
	for (const [index, r] of rows.gpu) {
		const step = Math.max(1, nice(r.g.n_sms, Math.max(2, r.h / 34)));
		s += `<text class="name" x="12" y="${r.top - 6}">GPU ${index}</text>` +
			`<text class="soft" x="${LEFT}" y="${r.top - 6}">${esc(r.g.name)}${r.g.name ? ", " : ""}${r.g.n_sms} SMs${r.g.sharing ? ", " + esc(r.g.sharing) : ""}</text>` +
			`<rect x="${LEFT}" y="${r.top}" width="${width - LEFT - RIGHT}" height="${r.h}" fill="var(--idle)"/>`;
		if (crowded.has(index)) s += `<text class="soft" x="${width - RIGHT}" y="${r.top - 6}" text-anchor="end">SMs of each task, averages over ${time((view[1] - view[0]) / crowded.get(index).n)}; zoom in for jobs</text>`;
		for (let sm = 0; sm < r.g.n_sms; sm += step) {
			const py = r.top + r.h * (1 - sm / r.g.n_sms);
			s += `<text class="soft" x="${LEFT - 8}" y="${py - 1}" text-anchor="end">${sm}</text>` +
				`<path d="M${LEFT - 5} ${py}H${LEFT}" stroke="var(--line)"/>`;
		}
		s += `<text class="soft" x="12" y="${r.top + r.h / 2}">SM</text>`;
	}
	return s;
}

/* The longest text that fits over a job: its task and number, its number, nothing. */
function label(j, room) {
	for (const text of [trace.tasks[j.task].name + " " + j.id, j.id]) {
		if (text.length * 6.3 + 10 < room) return text;
	}
	return "";
}

/* A missed deadline on an SM stripe: a flag where it was, a bar from there to the end of the job.
 * What would cover another one is left out: @flags and @bars know where the last one ended. */
function missed_on(p, j, lo, b, flags, bars) {
	const due = x(j.deadline), c = Math.max(due, lo), end = Math.max(b, c + .8);
	let s = "";
	if (b > c && !(Math.abs(bars.get(p) - end) < 1)) {
		bars.set(p, end);
		s += `M${c.toFixed(1)} ${(p.top + p.h - 5).toFixed(1)}H${end.toFixed(1)}v5H${c.toFixed(1)}z`;
	}
	if (due >= lo && !(Math.abs(flags.get(p) - due) < 7)) {
		const w = Math.min(4, p.h / 4);
		flags.set(p, due);
		s += `M${(due - w).toFixed(1)} ${p.top.toFixed(1)}h${2 * w}l${-w} ${(1.5 * w).toFixed(1)}z`;
	}
	return s;
}

/* Jobs that are in the view with some of their time, in order. */
function in_view() {
	const seen = [];
	for (let i = first_in_view(); i < jobs.length && from(jobs[i]) <= view[1]; i++) {
		if (from(jobs[i]) !== null && until(jobs[i]) >= view[0] && !off.has(jobs[i].task)) seen.push(i);
	}
	return seen;
}
const ran_in_view = j => j.granted !== null && j.finished !== null && j.finished >= view[0] && j.granted <= view[1];

/* Where a GPU has more segments than every other pixel of its stripes, it is drawn as columns: how
 * many of its SMs each task had on average over the time of a column, one task above the other. */
const COLUMN = 2;
function columns_of(seen) {
	const n = Math.max(1, Math.floor((width - LEFT - RIGHT) / COLUMN)), all = new Map();
	const crowd = new Map(trace.gpus.map(g => [g.index, {n: 0, stripes: new Set()}]));
	for (const i of seen) {
		const j = jobs[i], c = crowd.get(j.gpu);
		if (c && ran_in_view(j)) for (const s of j.stripes) { c.n++; c.stripes.add(s); }
	}
	for (const [gpu, c] of crowd) {
		if (c.n > c.stripes.size * n) all.set(gpu, {n, segments: c.n, sms: new Float64Array(n * trace.tasks.length), missed: new Uint32Array(n)});
	}
	const span = (view[1] - view[0]) / n;
	for (const i of all.size ? seen : []) {
		const j = jobs[i], c = all.get(j.gpu);
		if (!c || !ran_in_view(j)) continue;
		const a = Math.max(0, (j.granted - view[0]) / span), b = Math.min(n, (j.finished - view[0]) / span);
		for (let k = Math.floor(a); k < b; k++) c.sms[j.task * n + k] += (Math.min(b, k + 1) - Math.max(a, k)) * j.n;
		if (j.late && j.deadline >= view[0] && j.deadline < view[1]) c.missed[Math.floor((j.deadline - view[0]) / span)]++;
	}
	return all;
}
function columns(all) {
	const step = (width - LEFT - RIGHT) / Math.max(1, Math.floor((width - LEFT - RIGHT) / COLUMN));
	let s = "";
	for (const [gpu, c] of all) {
		const r = rows.gpu.get(gpu), floor = r.top + r.h, below = new Float64Array(c.n).fill(floor);
		let misses = "";
		for (const t of by_name) {
			let up = "", down = "", any = false;
			for (let k = 0; k < c.n; k++) {
				const sms = c.sms[t * c.n + k], y = below[k] - sms / r.g.n_sms * r.h, px = LEFT + k * step;
				any = any || sms > 0;
				up += `V${y.toFixed(2)}H${(px + step).toFixed(2)}`;
				down = `V${below[k].toFixed(2)}H${px.toFixed(2)}` + down;
				below[k] = y;
			}
			if (any) s += `<path class="columns${is_dim(t) ? " dim" : ""}" data-gpu="${gpu}" data-task="${esc(trace.tasks[t].name)}" fill="url(#t${t})" d="M${LEFT} ${floor.toFixed(2)}${up}${down}z"/>`;
		}
		for (let k = 0; k < c.n; k++) if (c.missed[k]) misses += `M${(LEFT + k * step).toFixed(1)} ${r.top}h${step.toFixed(2)}v5h-${step.toFixed(2)}z`;
		s += `<path class="late close" data-gpu="${gpu}" d="${misses}"/><rect class="average" data-gpu="${gpu}" x="${LEFT}" y="${r.top}" width="${width - LEFT - RIGHT}" height="${r.h}" fill="transparent"/>`;
	}
	return s;
}

/* Of jobs narrower than a pixel one a pixel and stripe is drawn. */
function segments(seen, crowded) {
	const lo = LEFT, hi = width - RIGHT, last = new Int32Array(stripes.length).fill(-1), flags = new Map(), bars = new Map();
	let boxes = "", labels = "", late = "", due = "", dim_late = "", drawn = 0, merged = 0;
	for (const c of crowded.values()) merged += c.segments;
	for (const i of seen) {
		const j = jobs[i];
		if (!ran_in_view(j) || crowded.has(j.gpu)) continue;
		const a = Math.max(x(j.granted), lo), b = Math.min(x(j.finished), hi), w = Math.max(b - a, .8), px = Math.floor(a);
		const dim = is_dim(j.task) ? " dim" : "";
		for (let k = 0; k < j.stripes.length; k++) {
			const p = stripes[j.stripes[k]];
			if (j.late && x(j.deadline) <= hi) {
				const path = missed_on(p, j, lo, b, flags, bars);
				if (dim) dim_late += path; else late += path;
				if (!dim && w > 12 && x(j.deadline) >= lo) due += `M${x(j.deadline).toFixed(1)} ${p.top.toFixed(1)}v${p.h.toFixed(1)}`;
			}
			if (b - a < .8) {
				if (last[j.stripes[k]] === px) { merged++; continue; }
				last[j.stripes[k]] = px;
			}
			drawn++;
			boxes += `<rect class="seg${EXACT[j.held] ? "" : " loose"}${dim}" data-i="${i}" data-job="${j.id}" data-gpu="${j.gpu}" ` +
				`data-sm="${p.first}" data-n="${p.n}" data-from="${j.granted}" data-to="${j.finished}" ` +
				`x="${a.toFixed(2)}" y="${p.top.toFixed(2)}" width="${w.toFixed(2)}" height="${p.h.toFixed(2)}" ` +
				`fill="url(#t${j.task})" stroke="${w > 3 ? hue(j.task) : "none"}"/>`;
			const text = k === 0 && w > 24 && p.h > 17 ? label(j, w) : "";
			if (text) {
				const need = text.length * 6.3 + 10, cx = (a + w / 2).toFixed(1), cy = p.top + p.h / 2;
				labels += `<g class="${dim}" pointer-events="none"><rect x="${(a + w / 2 - need / 2).toFixed(1)}" y="${(cy - 8).toFixed(1)}" width="${need}" height="16" rx="3" fill="var(--label)"/>` +
					`<text x="${cx}" y="${(cy + 4).toFixed(1)}" text-anchor="middle">${esc(text)}</text></g>`;
			}
		}
	}
	$("chart").dataset.drawn = drawn;
	$("chart").dataset.merged = merged;
	return boxes + `<path class="due" d="${due}"/><path class="late" d="${late}"/><path class="late dim" d="${dim_late}"/>` + labels;
}

/* Of what one task has in its row: shapes that go into one path each, and where the last one was. */
const row_of_task = () => ({runs: "", boxes: "", lags: "", waits: "", releases: "", ends: "", dues: "", late: "", px: {}, n: 0});

/* Where arrows would stand closer than this, only misses are marked, with ticks. */
const ARROW_GAP = 20;

/* Whether there is none yet of @kind on this pixel of the row; then there is. */
function is_free(row, kind, px) {
	px = Math.floor(px);
	if (row.px[kind] === px) return false;
	row.px[kind] = px;
	return true;
}

function add_to_row(row, j, i, base) {
	const end = j.finished === null ? trace.end : j.finished;
	if (j.granted !== null && j.finished !== null) {
		const a = Math.max(x(j.granted), LEFT - 2), w = Math.max(Math.min(x(j.finished), width) - a, .8);
		if (w > 3) row.boxes += `<rect class="run" data-i="${i}" x="${a.toFixed(2)}" y="${base - 9}" width="${w.toFixed(2)}" height="8" fill="url(#t${j.task})" stroke="${hue(j.task)}"/>`;
		else if (w > 1 || is_free(row, "runs", a)) row.runs += `M${a.toFixed(1)} ${base - 9}h${w.toFixed(1)}v8h-${w.toFixed(1)}z`;
	}
	if (j.release !== null) {
		const waited = x(j.granted !== null ? j.granted : end), release = x(j.release), asked = x(j.requested);
		if (asked - release > 1) row.lags += `M${release.toFixed(1)} ${base - 5}H${asked.toFixed(1)}`;
		if (waited - asked > 1) row.waits += `M${asked.toFixed(1)} ${base - 5}H${waited.toFixed(1)}`;
		if (!row.crowded) row.releases += `M${release.toFixed(1)} ${base}v-17m-2.6 4l2.6 -4l2.6 4`;
	}
	if (j.deadline === null) return;
	const due = x(j.deadline), arrow = () => `M${due.toFixed(1)} ${base - 18}v18m-2.6 -4l2.6 4l2.6 -4`;
	if (!j.late) {
		if (!row.crowded) row.ends += arrow();
		return;
	}
	if (!row.crowded) row.dues += arrow();
	else if (is_free(row, "dues", due)) row.dues += `M${due.toFixed(1)} ${base - 18}v7`;
	const c = Math.max(due, LEFT - 2);
	if (is_free(row, "late", c) || x(j.finished) - c > 1) row.late += `M${c.toFixed(1)} ${base - 5}h${Math.max(Math.min(x(j.finished), width) - c, 1.2).toFixed(1)}v4H${c.toFixed(1)}z`;
}

/* Late starts, waiting, running, release, deadline and what came after it, a row for each task. */
function taskRows(seen) {
	const all = trace.tasks.map(row_of_task);
	for (const i of seen) all[jobs[i].task].n++;
	for (const r of all) r.crowded = r.n * ARROW_GAP > width - LEFT - RIGHT;
	for (const i of seen) {
		const top = rows.task[jobs[i].task];
		if (top !== undefined) add_to_row(all[jobs[i].task], jobs[i], i, top + ROW - 6);
	}
	return all.map((r, t) => {
		const dim = is_dim(t) ? "dim" : "", miss = r.crowded ? " close" : "";
		return rows.task[t] === undefined ? "" : `<path d="M${LEFT} ${rows.task[t] + ROW - 5.5}H${width - RIGHT}" stroke="var(--line)"/><g class="${dim}">` +
			`<path d="${r.runs}" fill="${hue(t)}" pointer-events="none"/>${r.boxes}` +
			`<path class="lag" d="${r.lags}"/><path d="${r.waits}" stroke="${hue(t)}" stroke-width="1.6" stroke-dasharray="2 2" pointer-events="none"/>` +
			`<path class="late${miss}" d="${r.late}"/><path class="rel" d="${r.releases}"/>` +
			`<path class="end" d="${r.ends}"/><path class="due" d="${r.dues}"/></g>` +
			(r.crowded ? `<text class="soft hint" x="${width - RIGHT}" y="${rows.task[t] + 10}" text-anchor="end">zoom in for releases and deadlines</text>` : "");
	}).join("");
}

/* A mark for each kernel and copy, where the program issued it; one a pixel and row. */
function op_rows() {
	let s = "", drawn = 0;
	for (const {o, top} of rows.ops) {
		let d = "", at = first_at(o.times, Math.max(view[0], t_of(LEFT)));
		while (!off.has(o.task) && at < o.times.length && o.times[at] <= view[1]) {
			const px = x(o.times[at]);
			d += `M${px.toFixed(1)} ${top + 2}v${OP_ROW - 4}`;
			drawn++;
			at = Math.max(at + 1, first_at(o.times, t_of(Math.floor(px) + 1)));
		}
		s += `<path d="M${LEFT} ${top + OP_ROW - 1}H${width - RIGHT}" stroke="var(--line)"/>` +
			`<path class="${is_dim(o.task) ? "dim" : ""}" d="${d}" stroke="${hue(o.task)}" stroke-width="1.2" pointer-events="none"/>`;
	}
	$("chart").dataset.ops = drawn;
	return s;
}
/* The index of the first of @times, which are in order, that is not before @t. */
function first_at(times, t) {
	let lo = 0, hi = times.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (times[mid] < t) lo = mid + 1; else hi = mid;
	}
	return lo;
}
function op_names() {
	if (!rows.ops.length) return "";
	const left_out = ops.length - rows.ops.length;
	return `<text class="soft" x="${LEFT}" y="${rows.ops[0].top - 6}">kernels and copies, where the program issued them${left_out ? `; ${left_out} more rows are not shown` : ""}</text>` +
		rows.ops.map(({o, top}) => `<text class="soft" x="${LEFT - 8}" y="${top + OP_ROW - 4}" text-anchor="end"><title>${esc(o.name)} (${esc(trace.tasks[o.task].name)})</title>` +
			`${esc(o.name.length > 17 ? o.name.slice(0, 16) + "\u2026" : o.name)}</text>`).join("");
}

/* What was before the recording is only known of jobs that went on into it. */
function before() {
	const w = Math.min(x(0), width - RIGHT) - LEFT;
	return w < 2 ? "" : `<rect x="${LEFT}" y="${TOP}" width="${w.toFixed(1)}" height="${height - TOP - 4}" fill="var(--shade)" pointer-events="none"/>`;
}
function before_label() {
	const right = Math.min(x(0), width - RIGHT);
	return right - LEFT < 150 ? "" : `<g pointer-events="none"><rect x="${LEFT + 6}" y="${TOP + 27}" width="128" height="17" rx="3" fill="var(--label)"/>` +
		`<text class="soft" x="${LEFT + 12}" y="${TOP + 39}">before the recording</text></g>`;
}

function taskNames() {
	return trace.tasks.map((t, i) => rows.task[i] === undefined ? "" : `<text x="${LEFT - 8}" y="${rows.task[i] + ROW - 9}" text-anchor="end" class="${off.has(i) ? "soft" : ""}">${esc(t.name.length > 16 ? t.name.slice(0, 15) + "\u2026" : t.name)}</text>`).join("");
}

function power() {
	let s = "";
	for (const [index, r] of rows.gpu) {
		const list = powers.filter(p => p[1] === index);
		if (!r.watts || !list.length) continue;
		const most = list.reduce((m, p) => Math.max(m, p[2]), 1), y = p => r.watts + 18 - 16 * p[2] / most;
		let d = "";
		list.forEach((p, i) => { d += (i ? `H${x(p[0]).toFixed(1)}V` : `M${x(p[0]).toFixed(1)} `) + y(p).toFixed(1); });
		s += `<path d="${d}H${x(trace.end).toFixed(1)}" fill="none" stroke="var(--accent)" stroke-width="1.3"/>`;
	}
	return s;
}

function powerNames() {
	let s = "";
	for (const [index, r] of rows.gpu) {
		const list = powers.filter(p => p[1] === index);
		if (r.watts && list.length) s += `<text class="soft" x="${LEFT - 8}" y="${r.watts + 16}" text-anchor="end">power, to ${Math.round(list.reduce((m, p) => Math.max(m, p[2]), 0) / 1000)} W</text>`;
	}
	return s;
}

function notes() {
	return trace.notes.map(n => `<g class="note"><path d="M${x(n[0]).toFixed(1)} ${TOP - 4}V${height - 4}" stroke="${n[1] ? "var(--hot)" : "var(--accent)"}" stroke-dasharray="5 3"/>` +
		`<text x="${(x(n[0]) + 4).toFixed(1)}" y="${TOP + 8}" fill="var(--accent)">${n[1] ? n[1] + " events lost" : "policy " + esc(n[2])}</text></g>`).join("");
}

let averages = new Map(); /* the columns that are on the screen */
function draw() {
	const c = $("chart");
	const seen = in_view(), crowded = averages = columns_of(seen);
	let s = patterns("t") + axis() + panels(crowded);
	s += `<g clip-path="url(#tclip)">` + before() + columns(crowded) + segments(seen, crowded) + taskRows(seen) + op_rows() + power() + notes() + before_label();
	if (mark) s += `<rect x="${Math.min(mark[0], mark[1])}" y="${TOP}" width="${Math.abs(mark[1] - mark[0])}" height="${height - TOP - 4}" fill="var(--shade)" stroke="var(--accent)"/>`;
	s += `<path id="cursor" d="M0 ${TOP - 4}V${height - 4}" stroke="var(--soft)" stroke-dasharray="2 3" pointer-events="none"/>`;
	s += "</g>" + taskNames() + op_names() + powerNames();
	if (!jobs.length) s += `<text class="soft" x="${(LEFT + width - RIGHT) / 2}" y="${height / 2}" text-anchor="middle">No job asked for SMs while this was recorded.</text>`;
	c.innerHTML = s;
	move_cursor();
	c.dataset.from = view[0];
	c.dataset.origin = trace.origin;
	c.dataset.to = view[1];
	c.dataset.left = LEFT;
	c.dataset.right = width - RIGHT;
	overview();
}

/* A line below the pointer; without it nothing else is drawn anew when the pointer moves. */
function move_cursor() {
	const there = cursor !== null && cursor >= LEFT && cursor <= width - RIGHT;
	$("cursor").setAttribute("transform", `translate(${there ? cursor : -9} 0)`);
}

let bins = null;
function overview() {
	const n = Math.max(50, Math.floor((width - LEFT - RIGHT) / 2)), span = limits[1] - limits[0];
	const ox = t => LEFT + (t - limits[0]) / span * (width - LEFT - RIGHT);
	if (!bins || bins.length !== n) {
		const all = trace.gpus.reduce((sum, g) => sum + g.n_sms, 0) || 1;
		bins = new Float64Array(n);
		for (const j of jobs) {
			if (j.granted === null || j.finished === null) continue;
			const a = (j.granted - limits[0]) / span * n, b = (j.finished - limits[0]) / span * n;
			for (let k = Math.max(0, Math.floor(a)); k < n && k <= b; k++) {
				bins[k] += Math.max(0, Math.min(b, k + 1) - Math.max(a, k)) * j.n / all;
			}
		}
	}
	let d = `M${LEFT} ${OVER - 6}`;
	bins.forEach((v, k) => { d += `L${(LEFT + (k + .5) / n * (width - LEFT - RIGHT)).toFixed(1)} ${(OVER - 6 - Math.min(1, v) * (OVER - 16)).toFixed(1)}`; });
	let s = `<text class="soft" x="12" y="${OVER / 2 + 4}">busy SMs</text><path d="${d}L${width - RIGHT} ${OVER - 6}Z" fill="var(--soft)" fill-opacity=".38"/>`;
	let last = -9;
	for (const j of jobs) {
		const px = j.late ? ox(j.deadline) : 0;
		if (j.late && !off.has(j.task) && px - last >= 1) { s += `<path d="M${px.toFixed(1)} 3v6" stroke="var(--hot)" stroke-width="1.2"/>`; last = px; }
	}
	const a = ox(view[0]), b = ox(view[1]);
	s += `<rect x="${a.toFixed(1)}" y="1" width="${Math.max(2, b - a).toFixed(1)}" height="${OVER - 2}" rx="4" fill="var(--shade)" stroke="var(--accent)"/>`;
	$("over").innerHTML = s;
}

