package plan

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"coder/internal/core/display"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/tool"
)

//go:embed exit.md
var exitDoc string

// maxPlan limits the size of a plan in bytes.
const maxPlan = 64 << 10

// The ways to continue after a plan.
const (
	StartEditing = "startEditing"
	ClearContext = "clearContextAndStart"
	KeepPlanning = "keepPlanning"
)

// ExitOptions configures the tool that ends plan mode.
type ExitOptions struct {
	// Save saves a plan where the user can read it and returns its path.
	Save func(plan string) (path string, err error)
	// Modes returns the modes to continue in; the first is the default.
	Modes func() []ExitMode
	// FromYolo, if set, reports whether plan mode began in yolo, which is not among Modes.
	FromYolo func() bool
}

// ExitMode is a mode, and its text for the model.
type ExitMode struct{ Name, Text string }

// modeOption returns the option to continue in another mode than the first.
func modeOption(mode string) string { return StartEditing + ":" + mode }

type exitArgs struct {
	Plan string `json:"plan" also:"content text" doc:"Markdown"`
}

type exitResult struct {
	OK      bool           `json:"ok"`
	Choice  string         `json:"choice,omitempty"`
	Path    string         `json:"plan_path,omitempty"`
	Text    string         `json:"text"`
	Control *controlSignal `json:"controlSignal,omitempty"`
}

// controlSignal is the change of context in the form of other programs.
type controlSignal struct {
	Rebuild rebuildContext `json:"rebuildContext"`
}

type rebuildContext struct {
	Reason  string        `json:"reason"`
	NewMode string        `json:"newMode"`
	Mode    string        `json:"mode"`
	Message []rebuildText `json:"rebuildMessage,omitempty"`
}

type rebuildText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ExitPlan returns the tool by which the model submits its plan.
// The user says how to continue, or what the plan lacks.
func ExitPlan(o ExitOptions) tool.Tool {
	return tool.Func[exitArgs]{
		Name: "exit_plan_mode", Doc: exitDoc,
		Aliases: []tool.Alias{{Dialect: tool.Sema, Name: "ExitPlanMode"}, {Name: "exitPlanMode"}},
		Plan: func(_ context.Context, a exitArgs) (tool.Plan, error) {
			switch {
			case strings.TrimSpace(a.Plan) == "":
				return tool.Plan{}, errors.New("the plan is empty")
			case len(a.Plan) > maxPlan:
				return tool.Plan{}, message.Errorf("the plan is longer than %d bytes", maxPlan)
			}
			title, _, _ := strings.Cut(strings.TrimSpace(a.Plan), "\n")
			return tool.Plan{Title: strings.TrimLeft(title, "# "), Effects: []tool.Effect{{Kind: tool.Note, Target: "plan"}},
				Preview: display.Text(a.Plan)}, nil
		},
		Do: func(ctx context.Context, a exitArgs, _ io.Writer) (tool.Result, error) {
			return o.submitPlan(ctx, a.Plan)
		},
	}
}

func (o ExitOptions) submitPlan(ctx context.Context, plan string) (tool.Result, error) {
	path, err := o.Save(plan)
	if err != nil {
		return tool.Result{}, message.Errorf("save the plan: %w", err)
	}
	modes := o.Modes()
	meta := map[string]string{
		"planFilePath": path, uip.MetaOnYes: StartEditing, uip.MetaOnNo: KeepPlanning, uip.MetaOnText: KeepPlanning,
		uip.MetaAliasPrefix + StartEditing: modes[0].Name,
	}
	options := []uip.Option{{ID: StartEditing, Label: fmt.Sprintf("Start editing, in %s mode", modes[0].Name),
		Style: uip.StylePrimary, Default: true}}
	for _, m := range modes[1:] {
		options = append(options, uip.Option{ID: modeOption(m.Name), Label: fmt.Sprintf("Start editing, in %s mode", m.Name)})
		meta[uip.MetaAliasPrefix+modeOption(m.Name)] = m.Name
	}
	about := fmt.Sprintf("saved in %s", path)
	if o.FromYolo != nil && o.FromYolo() {
		about = fmt.Sprintf("saved in %s; yolo is not offered here, /yolo switches to it", path)
	}
	a, err := uip.InteractorFrom(ctx).Ask(ctx, uip.Request{
		Kind: uip.KindSelect, Purpose: uip.PurposeChooseStrategy,
		Display: uip.Display{Title: "How should the plan be carried out?", Description: about, Content: display.Text(plan),
			Metadata: meta},
		Options: append(options, uip.Option{ID: ClearContext,
			Label: fmt.Sprintf("Clear the context and start, in %s mode", modes[0].Name)},
			uip.Option{ID: KeepPlanning, Label: "Keep planning"}),
	})
	goOn := modes[0]
	for _, m := range modes {
		if a.Option == modeOption(m.Name) {
			a.Option, goOn = StartEditing, m
		}
	}
	said := ""
	if words := strings.TrimSpace(a.Input + " " + a.Comment); words != "" {
		said = " They said: " + words
	}
	switch {
	case err != nil:
		return tool.Result{}, err
	case a.IsUnanswered():
		return tool.Result{
			Value: exitResult{Path: path,
				Text: "No user is available to accept the plan. It is kept; end your turn with a short summary of it."},
			Failed: true, Summary: "nobody to ask",
		}, nil
	case a.Option == StartEditing || a.Option == ClearContext:
		signal := &controlSignal{rebuildContext{Reason: "mode_changed", NewMode: "Agent", Mode: goOn.Name}}
		next := &tool.Rebuild{Mode: goOn.Name}
		if a.Option == ClearContext { // continue with the plan alone
			next.Message = strings.TrimSpace("Implement the following plan:\n\n" + plan + "\n\n" + strings.TrimSpace(said))
			signal.Rebuild.Message = []rebuildText{{"text", next.Message}}
		}
		return tool.Result{
			Value: exitResult{OK: true, Choice: a.Option, Path: path,
				Text:    strings.TrimSpace("The user accepted the plan. Plan mode is over: carry it out. " + goOn.Text + said),
				Control: signal},
			Summary: "plan accepted", Rebuild: next,
		}, nil
	}
	return tool.Result{Value: exitResult{Path: path, Choice: KeepPlanning,
		Text: "The user wants to keep planning." + said}, Summary: "keep planning"}, nil
}
