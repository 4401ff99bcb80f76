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

// currentOptions returns the session's options in mode current.
func (s *acpSession) currentOptions(current string) []acp.Option {
	models := s.app.ModelNames()
	if more := s.listedModels.Load(); more != nil {
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

// sendOptions sends the current options to an editor that supports options: the oldest, which do not identify
// themselves, reject unknown updates.
func (s *acpSession) sendOptions(mode string) error {
	if !s.supportsOptions.Load() {
		return nil
	}
	return s.face.SendOptions(s.currentOptions(mode))
}

// askModels asks the endpoint for its models and sends them to the editor.
func (s *acpSession) askModels(ctx context.Context) {
	known := len(s.app.ModelNames())
	if names := s.app.FetchModelNames(ctx); len(names) > known {
		s.listedModels.Store(&names)
		current, _ := s.app.ModeState.Current()
		_ = s.sendOptions(current.Name) // a lost editor needs no list
	}
}

// noteMode reports a mode that the session entered by itself as a choice too.
func (s *acpSession) noteMode(_ context.Context, r event.Record) error {
	if m, ok := r.Event.(event.ModeChanged); ok {
		return s.sendOptions(m.Mode)
	}
	return nil
}

// applyChoice applies the user's choice and returns the current options.
func (e *acpServer) applyChoice(ctx context.Context, m acp.Message) (any, error) {
	var p acp.Selection
	s, err := e.findSession(m, &p)
	if err != nil {
		return nil, err
	}
	s.supportsOptions.Store(true)
	current, _ := s.app.ModeState.Current()
	there := slices.ContainsFunc(s.currentOptions(current.Name), func(o acp.Option) bool {
		return o.ID == p.Option && slices.ContainsFunc(o.Choices, func(c acp.Choice) bool { return c.Value == p.Value })
	})
	to := ""
	var why error
	if !there && p.Option == "model" && p.Value != "" { // the list may not have arrived
		why = s.app.CheckModelExists(ctx, p.Value)
		there = why == nil
	}
	switch {
	case why != nil:
		return nil, &acp.Error{Code: acp.CodeInvalidParams, Message: fmt.Sprintf("model cannot be %q: %v",
			singleLine(p.Value), why)}
	case !there:
		return nil, &acp.Error{Code: acp.CodeInvalidParams, Message: fmt.Sprintf("%s cannot be %q", singleLine(p.Option),
			singleLine(p.Value))}
	case p.Option == "mode":
		to = p.Value
	default:
		s.app.UseModel(p.Value)
	}
	if err := s.Session().ChangeSettings(ctx, to, s.out); err != nil {
		return nil, toProtocolError(err)
	}
	return map[string]any{"configOptions": s.currentOptions(cmp.Or(to, current.Name))}, nil
}

// modeDescriptions describes the modes for a list.
var modeDescriptions = map[string]string{
	mode.Build:    "works and checks the result; asks before changes and commands",
	mode.Plan:     "reads and plans; changes nothing",
	mode.Default:  "answers and edits; asks before changes and commands",
	mode.AutoEdit: "edits files without asking; asks before commands",
	mode.Yolo:     "runs everything without approval or checks",
}

// setMode switches to the mode that the user chose in the editor.
func (e *acpServer) setMode(ctx context.Context, m acp.Message) error {
	var p acp.Selection
	s, err := e.findSession(m, &p)
	if err != nil {
		return err
	}
	if p.Mode == "" {
		return &acp.Error{Code: acp.CodeInvalidParams, Message: "the request names no mode"}
	}
	if p.Mode == mode.Yolo && !e.invocation.flags.allowBypass {
		return &acp.Error{Code: acp.CodeInvalidParams, Message: "the mode yolo needs --allow-dangerously-skip-permissions"}
	}
	if err := s.Session().ChangeSettings(ctx, p.Mode, s.out); err != nil {
		return &acp.Error{Code: acp.CodeInvalidParams, Message: err.Error()}
	}
	return nil
}
