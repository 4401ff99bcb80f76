package browser

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"coder/internal/core/display"
	"coder/internal/core/uip"
)

// FleetBackend provides what the fleet page shows and does.
type FleetBackend struct {
	// Configured reports whether a fleet is configured. Without one there is no fleet page.
	Configured func() bool
	State      func(ctx context.Context) (Fleet, error)
	Answer     func(ctx context.Context, a uip.Response) error
	Cancel     func(ctx context.Context, task string) error
}

// Fleet is the state of a fleet, as its JSON output reports it.
type Fleet struct {
	Time  time.Time `json:"at"`
	Queue struct {
		Waiting int   `json:"waiting"`
		Taken   int   `json:"taken"`
		Limit   int64 `json:"limit"`
	} `json:"queue"`
	Counts     map[string]int `json:"counts"`
	Workers    []FleetWorker  `json:"workers"`
	Slots      int            `json:"slots"`
	Busy       int            `json:"busy"`
	CostUSD    float64        `json:"cost_usd"`
	Takeovers  int            `json:"takeovers"`
	Unknown    int            `json:"unknown_calls"`
	OldestWait float64        `json:"oldest_wait_seconds"`
	Tasks      []FleetTask    `json:"tasks"` // oldest first
}

// FleetWorker is a worker.
type FleetWorker struct {
	Name    string    `json:"name"`
	Host    string    `json:"host"`
	Version string    `json:"version"`
	Slots   int       `json:"slots"`
	Busy    int       `json:"busy"`
	State   string    `json:"state"`
	Seen    time.Time `json:"seen"`
}

// FleetTask is a submitted task.
type FleetTask struct {
	ID   string `json:"id"`
	Spec struct {
		Prompt string `json:"prompt"`
		Repo   string `json:"repo"`
	} `json:"spec"`
	Status   string       `json:"status"`
	Reason   string       `json:"reason"`
	Worker   string       `json:"worker"`
	Attempts int          `json:"attempts"`
	CostUSD  float64      `json:"cost_usd"`
	Created  time.Time    `json:"created"`
	Question *uip.Request `json:"question"`
}

// fleetStatuses lists the statuses of tasks and whether such a task can be canceled.
var fleetStatuses = []struct {
	name string
	open bool
}{{"queued", true}, {"running", true}, {"waiting", true}, {"done", false}, {"failed", false}, {"canceled", false},
	{"aside", false}}

func (p *page) hasFleet() bool { return p.Fleet.Configured != nil && p.Fleet.Configured() }

// fleetState fetches the fleet's state.
func (p *page) fleetState() (Fleet, error) {
	if !p.hasFleet() {
		return Fleet{}, &UserError{http.StatusNotFound, "no fleet here; coder fleet up starts one"}
	}
	return p.Fleet.State(p.r.Context())
}

// fleet shows queue, workers, tasks, open questions and cost.
func (p *page) fleet() (markup, error) {
	f, err := p.fleetState()
	if err != nil {
		return "", err
	}
	p.title = p.t("Fleet")
	var asks []markup
	for _, t := range f.Tasks {
		if t.Question != nil && t.Status == "waiting" {
			p.questionCount++
			asks = append(asks, element("p", p.t("Task %s asks:", t.ID), " ", oneLine(t.Spec.Prompt)),
				p.renderQuestionForm(*t.Question, p.pageURL("fleet", "answer", t.Question.ID)))
		}
	}
	figures := []any{attr{"id", "figures"}, attr{"data-refresh", ""}, attr{"aria-label", p.t("State")},
		element("p", classAttr("dim"), p.renderTime(f.Time)),
		element("p", element("strong", p.t("queue: %d waiting for a worker, %d with one", f.Queue.Waiting,
			f.Queue.Taken)), " · ",
			p.t("workers: %d, with %d of %d slots in use", len(f.Workers), f.Busy, f.Slots), " · ",
			fmt.Sprintf("$%.4f", f.CostUSD))}
	if f.OldestWait > 0 {
		figures = append(figures, element("p", classAttr("waiting"),
			p.t("longest wait for a person: %s", display.FormatDuration(time.Duration(f.OldestWait)*time.Second))))
	}
	if f.Takeovers+f.Unknown > 0 {
		figures = append(figures, element("p", p.t("resumed: %d; calls of unknown outcome: %d", f.Takeovers, f.Unknown)))
	}
	var bars []bar
	for _, s := range fleetStatuses {
		bars = append(bars, bar{p.translator.TranslateText(s.name), float64(f.Counts[s.name]),
			strconv.Itoa(f.Counts[s.name])})
	}
	figures = append(figures, plotBars(p.t("tasks, by status"), bars), p.renderWorkers(f), p.renderTasks(f))
	return joinParts(element("h1", p.title),
		element("section", append([]any{attr{"id", "asks"}, attr{"data-refresh", ""},
			attr{"aria-label", p.t("Open questions")}, attr{"aria-live", "polite"}}, asks)...),
		element("section", figures...)), nil
}

func (p *page) renderWorkers(f Fleet) markup {
	t := display.Table{Header: display.TextCells("worker", "host", "busy", "slots", "state", "last seen")}
	for _, w := range f.Workers {
		t.Rows = append(t.Rows, display.DataCells(oneLine(w.Name), oneLine(w.Host), strconv.Itoa(w.Busy),
			strconv.Itoa(w.Slots), p.translator.TranslateText(oneLine(w.State)), w.Seen.Local().Format(time.TimeOnly)))
	}
	if len(t.Rows) == 0 {
		return element("p", classAttr("failed"), p.t("no worker is taking tasks"))
	}
	return joinParts(element("h2", p.t("Workers")), p.renderTable(t))
}

// renderTasks lists the tasks, newest first.
func (p *page) renderTasks(f Fleet) markup {
	var rows []markup
	for i := len(f.Tasks) - 1; i >= 0; i-- {
		t := f.Tasks[i]
		end := markup("")
		for _, s := range fleetStatuses {
			if s.name == t.Status && s.open {
				end = p.renderForm(p.pageURL("fleet", "cancel", t.ID), element("button", classAttr("danger"), p.t("Cancel")))
			}
		}
		look := map[string]string{"running": "live", "waiting": "waiting", "failed": "failed", "aside": "failed"}[t.Status]
		rows = append(rows, element("li", element("code", t.ID),
			element("span", classAttr(look), p.translator.TranslateText(t.Status)), element("span", oneLine(t.Spec.Prompt)),
			element("span", classAttr("dim"), p.renderTime(t.Created), " · ", oneLine(t.Spec.Repo), " · ", oneLine(t.Worker),
				" · ", fmt.Sprintf("$%.4f", t.CostUSD)),
			end, element("span", classAttr("hit dim"), p.translator.TranslateText(oneLine(t.Reason)))))
	}
	if len(rows) == 0 {
		return element("p", p.t("no tasks; coder fleet submit adds one"))
	}
	return joinParts(element("h2", p.t("Tasks")), element("ul", classAttr("sessions"), rows))
}

// fleetAnswer answers a task's question.
func (p *page) fleetAnswer() (markup, error) {
	f, err := p.fleetState()
	if err != nil {
		return "", err
	}
	id := p.r.PathValue("question")
	for _, t := range f.Tasks {
		if t.Question == nil || t.Question.ID != id || t.Status != "waiting" {
			continue
		}
		a, err := p.parseFormAnswer(*t.Question)
		if err == nil {
			err = p.Fleet.Answer(p.r.Context(), a)
		}
		return p.redirectToFleet(err)
	}
	return "", &UserError{http.StatusConflict,
		"the question was already answered, or is no longer open; your answer changed nothing"}
}

// fleetCancel cancels a task.
func (p *page) fleetCancel() (markup, error) {
	f, err := p.fleetState()
	if err != nil {
		return "", err
	}
	id := p.r.PathValue("task")
	for _, t := range f.Tasks {
		if t.ID == id {
			return p.redirectToFleet(p.Fleet.Cancel(p.r.Context(), id))
		}
	}
	return "", &UserError{http.StatusNotFound, "task not found"}
}

func (p *page) redirectToFleet(err error) (markup, error) {
	if err == nil {
		p.redirect(p.pageURL("fleet"))
	}
	return "", err
}
