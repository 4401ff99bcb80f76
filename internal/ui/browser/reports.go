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

// renderChanges shows how the files changed between two records, file by file.
func (p *page) renderChanges() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	from, err := p.queryNumber("from")
	if err != nil {
		return "", err
	}
	to, err := p.queryNumber("to")
	if err != nil {
		return "", err
	}
	if to > 0 && from > to {
		return "", &UserError{http.StatusBadRequest, "the first record must come before the last"}
	}
	files, err := p.Diff(p.r.Context(), p.ref, max(from, 1), to)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Changes", p.t("Changes")
	span := element("form", classAttr("span"), attr{"method", "get"}, attr{"action", p.sessionURL("changes")},
		element("label", p.t("From record"), " ", p.renderNumberField("from", from)),
		element("label", p.t("to record"), " ", p.renderNumberField("to", to)), element("button", p.t("Show")))
	if len(files) == 0 {
		return joinParts(p.renderHeading(), p.damageWarning(), span, element("p", p.t("no files changed"))), nil
	}
	var all []markup
	added, deleted := 0, 0
	for _, f := range files {
		added, deleted = added+f.Added, deleted+f.Deleted
		all = append(all, p.renderFileDiff(f))
	}
	return joinParts(p.renderHeading(), p.damageWarning(), span,
		element("p", attr{"id", "reviewed"}, attr{"data-say",
			p.t(display.Plural(len(files), "%s of %d file reviewed", "%s of %d files reviewed"), "{}", len(files))},
			p.t(display.Plural(len(files), "%d file, +%d -%d", "%d files, +%d -%d"), len(files), added, deleted)), all), nil
}

func (p *page) renderFileDiff(f FileDiff) markup {
	if f.NotSaved {
		return element("p", p.t("%s changed, but its content was not saved", oneLine(f.Path)))
	}
	whole := fileDiff{path: f.Path, added: f.Added, deleted: f.Deleted}
	for _, part := range splitByFile(f.Unified) {
		whole.lines = append(whole.lines, part.lines...)
	}
	id := hashText(p.ref.Session + "\x00" + f.Path + "\x00" + f.Unified)
	return element("article", classAttr("review"), attr{"aria-label", f.Path},
		whole.render(nil), element("label", classAttr("seen"),
			element("input", attr{"type", "checkbox"}, attr{"data-review", id}), " ", p.t("reviewed")))
}

func (p *page) renderNumberField(name string, n uint64) markup {
	value := ""
	if n > 0 {
		value = formatUint(n)
	}
	return element("input", attr{"type", "number"}, attr{"name", name}, attr{"min", "1"}, attr{"value", value},
		attr{"size", "6"})
}

// window shows what fills the model's window.
func (p *page) window() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	s, err := p.StateAt(p.r.Context(), p.ref, 0)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Window", p.t("What the model sees")
	var bars []bar
	sum := 0
	for _, part := range s.Parts {
		sum += part.Tokens
		bars = append(bars, bar{p.translator.TranslateText(part.Name), float64(part.Tokens), strconv.Itoa(part.Tokens)})
	}
	ledger, err := p.ledger(s.Seq)
	if err != nil {
		return "", err
	}
	return joinParts(p.renderHeading(), p.damageWarning(),
		element("p", p.t("about %d tokens, as of record %d", sum, s.Seq)), plotBars(p.t("tokens, by part"), bars),
		element("p", classAttr("dim"), p.t("Tools are counted only by source.")), ledger), nil
}

// renderHeading renders the page's title and its session.
func (p *page) renderHeading() markup {
	title := p.ref.Session
	for r, err := range p.Records(p.r.Context(), p.ref, 0, event.LogDomain) {
		if e, ok := r.Event.(event.TaskCreated); ok && err == nil && e.ParentID == "" {
			title = e.Title
		} else if err == nil {
			continue
		}
		break
	}
	return joinParts(element("h1", p.title), element("p", element("a", attr{"href", p.sessionURL("")}, oneLine(title))))
}

// damageWarning renders a warning if part of the log cannot be read.
func (p *page) damageWarning() markup {
	for _, err := range p.Records(p.r.Context(), p.ref, 0) {
		if err != nil {
			return p.renderDamage(err)
		}
	}
	return ""
}

// renderDamage renders a warning that the log cannot be read further than shown.
func (p *page) renderDamage(err error) markup {
	if err == nil {
		return ""
	}
	return element("p", classAttr("refusal"), attr{"role", "alert"},
		p.t("The rest of the log cannot be read: %s", p.translator.TranslateError(err)), " ",
		element("a", attr{"href", p.sessionURL("audit")}, p.t("Audit")))
}

// maxAutoLedger is the number of records above which the ledger is computed only on request.
const maxAutoLedger = 2000

// ledger shows what filled the window, by source.
func (p *page) ledger(records uint64) (markup, error) {
	if records > maxAutoLedger && !p.r.URL.Query().Has("ledger") {
		return element("p", element("a", attr{"href", p.sessionURL("window", "ledger", "1")},
			p.t("By source, with cost; slow in a long session"))), nil
	}
	blocks, err := p.Ledger(p.r.Context(), p.ref)
	return joinParts(p.renderBlocks(blocks)), err
}

// turn is the usage of one turn.
type turn struct {
	number       int // from 1; 0 for usage outside turns
	title        string
	started, end time.Time
	waitTime     time.Duration // waiting for the user
	askedAt      time.Time
	calls        int
	usage        chat.Usage
}

// turnUsage computes the usage of each turn in a session.
func (p *page) turnUsage() (all []*turn, err error) {
	of := make(map[string]*turn) // by task
	var beside *turn             // usage of /compact and the like
	count := 0
	for r, err := range p.Records(p.r.Context(), p.ref, 0) {
		if err != nil {
			return all, err
		}
		t := of[r.Task]
		if e, ok := r.Event.(event.TaskCreated); ok {
			if of[e.ParentID] != nil && e.ParentID != "" {
				t = of[e.ParentID]
			} else {
				count++
				t = &turn{number: count, title: e.Title, started: r.Time}
				all = append(all, t)
			}
			of[e.TaskID] = t
		}
		model, used, spent := event.UsageOf(r.Event)
		if t == nil && spent && beside == nil {
			beside = &turn{started: r.Time, end: r.Time}
			all = append(all, beside)
		}
		if spent {
			of := cmp.Or(t, beside)
			of.usage = of.usage.Add(p.WithCost(p.ref.Root, model, used))
		}
		if t == nil {
			continue
		}
		t.end = r.Time
		switch r.Event.(type) {
		case event.ToolCallRequested:
			t.calls++
		case event.InteractionRequested:
			t.askedAt = r.Time
		case event.InteractionResponded:
			if !t.askedAt.IsZero() {
				t.waitTime, t.askedAt = t.waitTime+r.Time.Sub(t.askedAt), time.Time{}
			}
		}
	}
	return all, nil
}

// cost shows the money, tokens and time of each turn.
func (p *page) cost() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	turns, err := p.turnUsage()
	damaged := p.renderDamage(err)
	p.tab, p.title = "Cost", p.t("Cost and time")
	table := display.Table{Header: display.TextCells("turn", "in", "cached", "out", "cost", "time", "waited for you",
		"Calls", "about")}
	var money, tokens, took []bar
	var sum chat.Usage
	for _, t := range turns {
		sum = sum.Add(t.usage)
		work := max(t.end.Sub(t.started)-t.waitTime, 0)
		name := strconv.Itoa(t.number)
		cost := p.formatCost(t.usage)
		table.Rows = append(table.Rows, display.DataCells(name, strconv.Itoa(t.usage.In), strconv.Itoa(t.usage.Cached),
			strconv.Itoa(t.usage.Out), cost,
			display.FormatDuration(work), display.FormatDuration(t.waitTime), strconv.Itoa(t.calls), oneLine(t.title)))
		money = append(money, bar{name, t.usage.Cost, cost})
		tokens = append(tokens, bar{name, float64(t.usage.In + t.usage.Out), strconv.Itoa(t.usage.In + t.usage.Out)})
		took = append(took, bar{name, work.Seconds(), display.FormatDuration(work)})
	}
	if len(turns) == 0 {
		return joinParts(p.renderHeading(), damaged, element("p", p.t("nothing was spent in this session"))), nil
	}
	total := p.formatCost(sum)
	about := markup("")
	if sum.Unpriced {
		about = element("p", classAttr("dim"),
			p.t("unknown prices are not included in the cost; provider.model_info can set them"))
	}
	return joinParts(p.renderHeading(), damaged, element("p", element("strong", total), " · ",
		p.t("%d tokens in, %d out", sum.In, sum.Out)), about,
		plotColumns(p.t("money, by turn"), money), plotColumns(p.t("tokens, by turn"), tokens),
		plotColumns(p.t("time, by turn"), took), p.renderTable(table)), nil
}

// formatCost formats the cost, where prices are known.
func (p *page) formatCost(u chat.Usage) string {
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
	if err := p.findSession(); err != nil {
		return "", err
	}
	at, err := p.queryNumber("at")
	if err != nil {
		return "", err
	}
	v, records, err := p.readSession(p.r.Context(), p.ref, at)
	damaged := p.renderDamage(err)
	if at > v.lastSeq {
		return "", &UserError{http.StatusNotFound, p.t("session %s has %d records", p.ref.Session, v.lastSeq)}
	}
	at = cmp.Or(at, v.lastSeq)
	s, err := p.StateAt(p.r.Context(), p.ref, at)
	if err != nil {
		return "", err
	}
	p.tab, p.title = "Replay", p.t("Replay")
	step := func(name string, to uint64) markup {
		if to < 1 || to > v.lastSeq || to == at {
			return ""
		}
		return element("a", attr{"href", p.sessionURL("replay", "at", formatUint(to))}, name)
	}
	slider := element("form", classAttr("slider"), attr{"method", "get"}, attr{"action", p.sessionURL("replay")},
		attr{"id", "replay"},
		element("label", attr{"for", "at"}, p.t("Record")), " ",
		element("input", attr{"type", "range"}, attr{"id", "at"}, attr{"name", "at"}, attr{"min", "1"},
			attr{"max", formatUint(max(v.lastSeq, 1))}, attr{"value", formatUint(at)}),
		element("output", attr{"for", "at"}, formatUint(at)), element("span", classAttr("dim"), " / ", v.lastSeq),
		element("button", p.t("Show")))
	return joinParts(p.renderHeading(), damaged, slider,
		element("div", attr{"id", "asof"}, element("p", classAttr("dim"), p.t("as of record %d", at), " ",
			p.renderTime(s.Time)),
			element("p", classAttr("span"), step(p.t("First"), 1), step(p.t("Previous"), at-1), step(p.t("Next"), at+1),
				step(p.t("Last"), v.lastSeq)),
			p.renderTravel(at),
			element("section", attr{"aria-label", p.t("State")}, p.renderBlocks(s.Blocks)),
			element("ol", attr{"aria-label", p.t("Timeline")}, classAttr("timeline"),
				p.entryItems(records[max(0, len(records)-30):])))), nil
}

// audit shows whether the record is intact, and all calls.
func (p *page) audit() (markup, error) {
	if err := p.findSession(); err != nil {
		return "", err
	}
	p.tab, p.title = "Audit", p.t("Audit")
	calls, readErr := audit.PairCalls(p.Records(p.r.Context(), p.ref, 0, event.LogAudit))
	verdict := p.renderIntegrity()
	if readErr != nil {
		verdict = joinParts(verdict, element("p", classAttr("refusal"), p.translator.TranslateError(readErr)))
	}
	t := display.Table{Header: display.TextCells("Record", "When", "Tool", "verdict", "Outcome", "Effects")}
	early := max(len(calls)-maxAudited, 0)
	for _, c := range calls[early:] {
		outcome := "unknown"
		if c.Completed != nil && !c.Completed.OutcomeUnknown {
			if outcome = "done"; c.Completed.IsError {
				outcome = "failed"
			}
		}
		row := display.DataCells("#"+formatUint(c.Seq), c.Time.Local().Format("2006-01-02 15:04:05"), c.Requested.Tool, "",
			"", oneLine(c.Requested.DescribeEffects(p.translator.TranslateText)))
		row[3], row[4] = display.TextCells(oneLine(c.Requested.VerdictText()))[0], display.TextCells(outcome)[0]
		t.Rows = append(t.Rows, row)
	}
	more := markup("")
	if early > 0 {
		more = element("p", classAttr("dim"), p.t("and %d older", early))
	}
	if len(calls) == 0 {
		return joinParts(p.renderHeading(), verdict, element("p", p.t("session %s called no tool", p.ref.Session))), nil
	}
	return joinParts(p.renderHeading(), verdict, p.renderTable(t), more), nil
}

// maxAudited is the most calls listed.
const maxAudited = 500

// renderIntegrity shows whether the logs are unchanged since they were written.
func (p *page) renderIntegrity() markup {
	id := p.ref.Session
	report, err := p.Verify(p.ref)
	if err != nil {
		return element("p", classAttr("refusal"), attr{"role", "alert"},
			element("strong", p.t("The record is not intact.")), " ",
			p.t("session %s: %d lines are intact, then: %s", id, report.Lines, p.translator.TranslateError(err)))
	}
	return element("p", classAttr("verdict lines"), strings.Join(report.Describe(id, p.t), "\n"))
}
