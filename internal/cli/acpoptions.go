package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"coder/internal/core/event"
	"coder/internal/policy/mode"
	"coder/internal/ui/acp"
)

// options returns the session's options in mode current.
func (s *edited) options(current string) []acp.Option {
	models := s.app.ModelNames()
	if more := s.named.Load(); more != nil {
		models = append(models, *more...)
	}
	model := s.app.ModelName()
	seen := make(map[string]bool)
	models = slices.DeleteFunc(models, func(name string) bool {
		_, profile := s.app.Config.Profiles[name]
		drop := seen[name] || profile && name != model
		seen[name] = true
		return drop
	})
	return acp.Options(acp.Modes{Current: current, Available: s.modes}, model, models)
}

// offer sends the current options to an editor that supports options: the oldest, which do not identify
// themselves, reject unknown updates.
func (s *edited) offer(mode string) error {
	if !s.knows.Load() {
		return nil
	}
	return s.face.Offer(s.options(mode))
}

// askModels asks the endpoint for its models and sends them to the editor.
func (s *edited) askModels(ctx context.Context) {
	known := len(s.app.ModelNames())
	if names := s.app.Offered(ctx); len(names) > known {
		s.named.Store(&names)
		current, _ := s.app.Modes.Current()
		_ = s.offer(current.Name) // a lost editor needs no list
	}
}

// note reports a mode that the session entered by itself as a choice too.
func (s *edited) note(_ context.Context, r event.Record) error {
	if m, ok := r.Event.(event.ModeChanged); ok {
		return s.offer(m.Mode)
	}
	return nil
}

// choose applies the user's choice and returns the current options.
func (e *editor) choose(ctx context.Context, m acp.Message) (any, error) {
	var p acp.Selection
	s, err := e.find(m, &p)
	if err != nil {
		return nil, err
	}
	s.knows.Store(true)
	current, _ := s.app.Modes.Current()
	there := slices.ContainsFunc(s.options(current.Name), func(o acp.Option) bool {
		return o.ID == p.Option && slices.ContainsFunc(o.Choices, func(c acp.Choice) bool { return c.Value == p.Value })
	})
	to := ""
	var why error
	if !there && p.Option == "model" && p.Value != "" { // the list may not have arrived
		why = s.app.Takes(ctx, p.Value)
		there = why == nil
	}
	switch {
	case why != nil:
		return nil, &acp.Error{Code: acp.CodeParams, Message: fmt.Sprintf("model cannot be %q: %v", oneLine(p.Value), why)}
	case !there:
		return nil, &acp.Error{Code: acp.CodeParams, Message: fmt.Sprintf("%s cannot be %q", oneLine(p.Option), oneLine(p.Value))}
	case p.Option == "mode":
		to = p.Value
	default:
		s.app.UseModel(p.Value)
	}
	if err := s.Session().Change(ctx, to, s.out); err != nil {
		return nil, asError(err)
	}
	return map[string]any{"configOptions": s.options(cmp.Or(to, current.Name))}, nil
}

// aboutModes describes the modes for a list.
var aboutModes = map[string]string{
	mode.Build: "works and checks the result; asks before changes and commands", mode.Plan: "reads and plans; changes nothing",
	mode.Default: "answers and edits; asks before changes and commands", mode.AutoEdit: "edits files without asking; asks before commands",
	mode.Yolo: "runs everything without approval or checks",
}

// setMode switches to the mode that the user chose in the editor.
func (e *editor) setMode(ctx context.Context, m acp.Message) error {
	var p acp.Selection
	s, err := e.find(m, &p)
	if err != nil {
		return err
	}
	if p.Mode == "" {
		return &acp.Error{Code: acp.CodeParams, Message: "the request names no mode"}
	}
	if p.Mode == mode.Yolo && !e.inv.flags.mayBypass {
		return &acp.Error{Code: acp.CodeParams, Message: "the mode yolo needs --allow-dangerously-skip-permissions"}
	}
	if err := s.Session().Change(ctx, p.Mode, s.out); err != nil {
		return &acp.Error{Code: acp.CodeParams, Message: err.Error()}
	}
	return nil
}
