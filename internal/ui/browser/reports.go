package browser

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"coder/internal/core/chat"
	"coder/internal/core/display"
	"coder/internal/core/event"
	"coder/internal/record/audit"
)

// changes shows how the files changed between two records, file by file.
func (p *page) changes() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	from, err := p.number("from")
	if err != nil {
		return "", err
	}
	to, err := p.number("to")
	if err != nil {
		return "", err
	}
	if to > 0 && from > to {
		return "", &Problem{http.StatusBadRequest, "the first record must come before the last"}
	}
	files, err := p.Diff(p.r.Context(), p.place, max(from, 1), to)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Changes", p.t("Changes")
	span := el("form", class("span"), attr{"method", "get"}, attr{"action", p.of("changes")},
		el("label", p.t("From record"), " ", p.numberField("from", from)), el("label", p.t("to record"), " ", p.numberField("to", to)), el("button", p.t("Show")))
	if len(files) == 0 {
		return join(p.heading(), p.intact(), span, el("p", p.t("no files changed"))), nil
	}
	var all []markup
	added, deleted := 0, 0
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
		all = append(all, p.changed(f))
	}
	return join(p.heading(), p.intact(), span, el("p", attr{"id", "reviewed"}, attr{"data-say", p.t(display.Form(len(files), "%s of %d file reviewed", "%s of %d files reviewed"), "{}", len(files))}, p.t(display.Form(len(files), "%d file, +%d -%d", "%d files, +%d -%d"), len(files), added, deleted)), all), nil
}

func (p *page) changed(f FileDiff) markup {
	if f.Lost {
		return el("p", p.t("%s changed, but its content was not saved", line(f.Path)))
	}
	whole := fileDiff{path: f.Path, added: f.Added, gone: f.Deleted}
	for _, part := range byFile(f.Unified) {
		whole.lines = append(whole.lines, part.lines...)
	}
	id := digestText(p.place.Session + "\x00" + f.Path + "\x00" + f.Unified)
	return el("article", class("review"), attr{"aria-label", f.Path},
		whole.show(nil), el("label", class("seen"), el("input", attr{"type", "checkbox"}, attr{"data-review", id}), " ", p.t("reviewed")))
}

func (p *page) numberField(name string, n uint64) markup {
	value := ""
	if n > 0 {
		value = decimal(n)
	}
	return el("input", attr{"type", "number"}, attr{"name", name}, attr{"min", "1"}, attr{"value", value}, attr{"size", "6"})
}

// window shows what fills the model's window.
func (p *page) window() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	s, err := p.Stand(p.r.Context(), p.place, 0)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Window", p.t("What the model sees")
	var bars []bar
	sum := 0
	for _, part := range s.Parts {
		sum += part.Tokens
		bars = append(bars, bar{p.words.Said(part.Name), float64(part.Tokens), strconv.Itoa(part.Tokens)})
	}
	ledger, err := p.ledger(s.Seq)
	if err != nil {
		return "", err
	}
	return join(p.heading(), p.intact(), el("p", p.t("about %d tokens, as of record %d", sum, s.Seq)), plotBars(p.t("tokens, by part"), bars),
		el("p", class("dim"), p.t("Tools are counted only by source.")), ledger), nil
}

// heading renders the page's title and its session.
func (p *page) heading() markup {
	title := p.place.Session
	for r, err := range p.Records(p.r.Context(), p.place, 0, event.Domain) {
		if e, ok := r.Event.(event.TaskCreated); ok && err == nil && e.ParentID == "" {
			title = e.Title
		} else if err == nil {
			continue
		}
		break
	}
	return join(el("h1", p.title), el("p", el("a", attr{"href", p.of("")}, line(title))))
}

// intact renders a warning if part of the log cannot be read.
func (p *page) intact() markup {
	for _, err := range p.Records(p.r.Context(), p.place, 0) {
		if err != nil {
			return p.damaged(err)
		}
	}
	return ""
}

// damaged renders a warning that the log cannot be read further than shown.
func (p *page) damaged(err error) markup {
	if err == nil {
		return ""
	}
	return el("p", class("refusal"), attr{"role", "alert"}, p.t("The rest of the log cannot be read: %s", p.words.Said(err.Error())), " ",
		el("a", attr{"href", p.of("audit")}, p.t("Audit")))
}

// longSession is the number of records above which the ledger is computed only on request.
const longSession = 2000

// ledger shows what filled the window, by source.
func (p *page) ledger(records uint64) (markup, error) {
	if records > longSession && !p.r.URL.Query().Has("ledger") {
		return el("p", el("a", attr{"href", p.of("window", "ledger", "1")}, p.t("By source, with cost; slow in a long session"))), nil
	}
	blocks, err := p.Ledger(p.r.Context(), p.place)
	return join(p.blocks(blocks)), err
}

// turn is the usage of one turn.
type turn struct {
	number     int // from 1; 0 for usage outside turns
	title      string
	began, end time.Time
	waited     time.Duration // waiting for the user
	asked      time.Time
	calls      int
	used       chat.Usage
}

// turns computes the usage of each turn in a session.
func (p *page) turns() (all []*turn, err error) {
	of := make(map[string]*turn) // by task
	var beside *turn             // usage of /compact and the like
	count := 0
	for r, err := range p.Records(p.r.Context(), p.place, 0) {
		if err != nil {
			return all, err
		}
		t := of[r.Task]
		if e, ok := r.Event.(event.TaskCreated); ok {
			if of[e.ParentID] != nil && e.ParentID != "" {
				t = of[e.ParentID]
			} else {
				count++
				t = &turn{number: count, title: e.Title, began: r.Time}
				all = append(all, t)
			}
			of[e.TaskID] = t
		}
		model, used, spent := event.Used(r.Event)
		if t == nil && spent && beside == nil {
			beside = &turn{began: r.Time, end: r.Time}
			all = append(all, beside)
		}
		if spent {
			of := cmp.Or(t, beside)
			of.used = of.used.Add(p.Priced(p.place.Root, model, used))
		}
		if t == nil {
			continue
		}
		t.end = r.Time
		switch r.Event.(type) {
		case event.ToolCallRequested:
			t.calls++
		case event.InteractionRequested:
			t.asked = r.Time
		case event.InteractionResponded:
			if !t.asked.IsZero() {
				t.waited, t.asked = t.waited+r.Time.Sub(t.asked), time.Time{}
			}
		}
	}
	return all, nil
}

// cost shows the money, tokens and time of each turn.
func (p *page) cost() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	turns, err := p.turns()
	damaged := p.damaged(err)
	p.tab, p.title = "Cost", p.t("Cost and time")
	table := display.Table{Head: display.Words("turn", "in", "cached", "out", "cost", "time", "waited for you", "Calls", "about")}
	var money, tokens, took []bar
	var sum chat.Usage
	for _, t := range turns {
		sum = sum.Add(t.used)
		work := max(t.end.Sub(t.began)-t.waited, 0)
		name := strconv.Itoa(t.number)
		cost := p.money(t.used)
		table.Rows = append(table.Rows, display.Data(name, strconv.Itoa(t.used.In), strconv.Itoa(t.used.Cached), strconv.Itoa(t.used.Out), cost,
			display.Duration(work), display.Duration(t.waited), strconv.Itoa(t.calls), line(t.title)))
		money = append(money, bar{name, t.used.Cost, cost})
		tokens = append(tokens, bar{name, float64(t.used.In + t.used.Out), strconv.Itoa(t.used.In + t.used.Out)})
		took = append(took, bar{name, work.Seconds(), display.Duration(work)})
	}
	if len(turns) == 0 {
		return join(p.heading(), damaged, el("p", p.t("nothing was spent in this session"))), nil
	}
	total := p.money(sum)
	about := markup("")
	if sum.Unpriced {
		about = el("p", class("dim"), p.t("unknown prices are not included in the cost; provider.model_info can set them"))
	}
	return join(p.heading(), damaged, el("p", el("strong", total), " · ", p.t("%d tokens in, %d out", sum.In, sum.Out)), about,
		plotColumns(p.t("money, by turn"), money), plotColumns(p.t("tokens, by turn"), tokens), plotColumns(p.t("time, by turn"), took), p.table(table)), nil
}

// money formats the cost, where prices are known.
func (p *page) money(u chat.Usage) string {
	switch cost := fmt.Sprintf("$%.4f", u.Cost); {
	case u.Unpriced && u.Cost == 0:
		return p.t("cost unknown")
	case u.Unpriced:
		return "≥" + cost
	default:
		return cost
	}
}

// replay shows the session's state at one of its records.
func (p *page) replay() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	at, err := p.number("at")
	if err != nil {
		return "", err
	}
	v, records, err := p.read(p.r.Context(), p.place, at)
	damaged := p.damaged(err)
	if at > v.last {
		return "", &Problem{http.StatusNotFound, p.t("session %s has %d records", p.place.Session, v.last)}
	}
	at = cmp.Or(at, v.last)
	s, err := p.Stand(p.r.Context(), p.place, at)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Replay", p.t("Replay")
	step := func(name string, to uint64) markup {
		if to < 1 || to > v.last || to == at {
			return ""
		}
		return el("a", attr{"href", p.of("replay", "at", decimal(to))}, name)
	}
	slider := el("form", class("slider"), attr{"method", "get"}, attr{"action", p.of("replay")}, attr{"id", "replay"},
		el("label", attr{"for", "at"}, p.t("Record")), " ",
		el("input", attr{"type", "range"}, attr{"id", "at"}, attr{"name", "at"}, attr{"min", "1"}, attr{"max", decimal(max(v.last, 1))}, attr{"value", decimal(at)}),
		el("output", attr{"for", "at"}, decimal(at)), el("span", class("dim"), " / ", v.last), el("button", p.t("Show")))
	return join(p.heading(), damaged, slider,
		el("div", attr{"id", "asof"}, el("p", class("dim"), p.t("as of record %d", at), " ", p.when(s.Time)),
			el("p", class("span"), step(p.t("First"), 1), step(p.t("Previous"), at-1), step(p.t("Next"), at+1), step(p.t("Last"), v.last)),
			p.travel(at),
			el("section", attr{"aria-label", p.t("State")}, p.blocks(s.Blocks)),
			el("ol", attr{"aria-label", p.t("Timeline")}, class("timeline"), p.items(records[max(0, len(records)-30):])))), nil
}

// audit shows whether the record is intact, and all calls.
func (p *page) audit() (markup, error) {
	if err := p.find(); err != nil {
		return "", err
	}
	p.tab, p.title = "Audit", p.t("Audit")
	calls, readErr := audit.Pair(p.Records(p.r.Context(), p.place, 0, event.Audit))
	verdict := p.verdict()
	if readErr != nil {
		verdict = join(verdict, el("p", class("refusal"), p.words.Said(readErr.Error())))
	}
	t := display.Table{Head: display.Words("Record", "When", "Tool", "verdict", "Outcome", "Effects")}
	early := max(len(calls)-mostAudited, 0)
	for _, c := range calls[early:] {
		outcome := "unknown"
		if c.Completed != nil && !c.Completed.Unknown {
			if outcome = "done"; c.Completed.IsError {
				outcome = "failed"
			}
		}
		row := display.Data("#"+decimal(c.Seq), c.Time.Local().Format("2006-01-02 15:04:05"), c.Requested.Tool, "", "", line(c.Requested.Touches(p.words.Said)))
		row[3], row[4] = display.Words(line(c.Requested.Ruling()))[0], display.Words(outcome)[0]
		t.Rows = append(t.Rows, row)
	}
	more := markup("")
	if early > 0 {
		more = el("p", class("dim"), p.t("and %d older", early))
	}
	if len(calls) == 0 {
		return join(p.heading(), verdict, el("p", p.t("session %s called no tool", p.place.Session))), nil
	}
	return join(p.heading(), verdict, p.table(t), more), nil
}

// mostAudited is the most calls listed.
const mostAudited = 500

// verdict shows whether the logs are unchanged since they were written.
func (p *page) verdict() markup {
	id := p.place.Session
	report, err := p.Verify(p.place)
	if err != nil {
		return el("p", class("refusal"), attr{"role", "alert"}, el("strong", p.t("The record is not intact.")), " ",
			p.t("session %s: %d lines are intact, then: %s", id, report.Lines, p.words.Said(err.Error())))
	}
	return el("p", class("verdict lines"), strings.Join(report.Sentences(id, p.t), "\n"))
}
