package term

import (
	"slices"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/core/uip"
	"coder/internal/ui/term/ink"
)

// fill puts keys one after the other, each whole on a line where one has room for it;
// below one that has not, another line begins.
func (d drawing) fill(keys []string) string {
	apart := mark(d.ASCII, " · ", d.t("; "))
	end := strings.TrimRight(apart, " ")
	width := d.width()
	var done, line string
	for i, key := range keys {
		folded := ink.Hung(line, width, belowKey)
		column, wide := ink.Width(folded[strings.LastIndexByte(folded, '\n')+1:]), ink.Width(key+end)
		whole := !strings.Contains(folded, "\n")
		switch {
		case i == 0:
			line = key
		case width <= 0 || whole && column+ink.Width(apart)+wide <= width:
			line += apart + key
		default:
			if column+ink.Width(end) <= width {
				line += end
			}
			done, line = done+line+"\n", key
		}
	}
	return done + line
}

// belowKey is how far a choice that is wider than a line goes on set in: below its words.
const belowKey = len("y = ")

// putChoices puts what can be answered.
func (d drawing) putChoices(q uip.Request) {
	for line := range strings.SplitSeq(d.fill(d.choices(q)), "\n") {
		d.page.hung(d.width(), ink.Warn, sanitize.Text(line), belowKey)
	}
}

// choices say which key means what.
func (d drawing) choices(q uip.Request) []string {
	several, options := q.Kind == uip.Composite, q.Options
	if several && len(options) == 0 {
		options = []uip.Option{{ID: uip.Approve}, {ID: uip.Reject}}
	}
	var keys []string
	for _, o := range options {
		switch {
		case o.ID == uip.Approve && several:
			keys = append(keys, d.t("y = yes to all, this once"))
		case o.ID == uip.Approve:
			keys = append(keys, d.t("y = yes, this once"))
		case o.ID == uip.Reject && several:
			some := d.t("numbers = yes to these only, such as 1 3")
			if len(q.Parts) == 2 {
				some = d.t("1 or 2 = yes to this one only")
			}
			keys = append(keys, d.t("n = no to all"), some)
			if i := slices.IndexFunc(q.Parts, func(part uip.Request) bool { return part.Display.Metadata[uip.Hunks] != "" }); i >= 0 {
				keys = append(keys, d.t("%d.1 = yes to this hunk only", i+1))
			}
		case o.ID == uip.Some && q.Display.Metadata[uip.Hunks] == "2":
			keys = append(keys, d.t("h 1 = yes to hunk 1 only"))
		case o.ID == uip.Some:
			keys = append(keys, d.t("h 1 3 = yes to these hunks only"))
		case o.ID == uip.Reject:
			keys = append(keys, d.t("n = no"))
		case o.ID == uip.Session && d.alike(q):
			keys = append(keys, d.t("s = always in this session"))
		case o.ID == uip.Session:
			keys = append(keys, d.t("s = always in this session (remembers: %s)", d.remembered(q, o.ID)))
		case o.ID == uip.Always && d.alike(q):
			keys = append(keys, d.t("a = always in this project (s and a remember: %s)", d.remembered(q, o.ID)))
		case o.ID == uip.Always && d.remembered(q, o.ID) == "":
			keys = append(keys, d.t("a = always"))
		case o.ID == uip.Always:
			keys = append(keys, d.t("a = always in this project (remembers: %s)", d.remembered(q, o.ID)))
		case o.ID == uip.Below:
			keys = append(keys, d.t("d = %s, this session", d.remembered(q, o.ID)))
		default:
			keys = append(keys, revealedLine(o.ID+" = "+d.Words.Said(o.Label), titleRunes))
		}
	}
	if d.Trusts(q) {
		keys = append(keys, d.t("t = yes, and trust this folder: checks need no approval"))
	}
	if *d.hides {
		keys = append(keys, d.t("v = view all"))
	}
	rejects := slices.ContainsFunc(options, func(o uip.Option) bool { return o.ID == uip.Reject })
	if rejects && q.Author != event.ActorUser && q.Author != event.ActorVerifier { // else it is the person's own command, or the program's
		keys = append(keys, d.t("y and …, n … = add a note"))
	}
	return keys
}

// remembered is what an answer would remember, in full and in the person's language:
// nobody can agree to what is cut off. Of a card it is that of each of its calls.
func (d drawing) remembered(q uip.Request, option string) string {
	var all []string
	add := func(what string) {
		parts := strings.Split(decidedLine(what, 0), "…") // which is our own word for anything
		for i, part := range parts {
			parts[i] = sanitize.RevealCommand(part)
		}
		if what = d.Words.Said(strings.Join(parts, mark(d.ASCII, "…", "..."))); what != "" && !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	parts := q.Parts
	if len(parts) == 0 {
		parts = []uip.Request{q}
	}
	for _, part := range parts {
		what := part.Remembered(option)
		if len(what) == 0 && option == uip.Below && len(q.Parts) > 0 {
			what = part.Remembered(uip.Session) // no folder, so as far as the session
		}
		for _, one := range what {
			if showsLine(part, one) {
				one = "this exact command, as shown above"
			}
			add(one)
		}
	}
	return strings.Join(all, d.t(", "))
}

// showsLine reports whether a grant is of the very command that a card shows, and that is
// too long to stand among the keys once more.
func showsLine(q uip.Request, what string) bool {
	line, exactly := strings.CutPrefix(what, "this exact command line: ")
	code, ok := q.Display.Content.(display.Code)
	return ok && exactly && strings.TrimSpace(line) == strings.TrimSpace(code.Source) && (strings.Contains(line, "\n") || ink.Width(line) > titleRunes)
}

// alike reports whether the session would remember what the project would.
func (d drawing) alike(q uip.Request) bool {
	what := d.remembered(q, uip.Always)
	return what != "" && what == d.remembered(q, uip.Session)
}
