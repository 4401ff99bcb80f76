package orchestrator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"coder/internal/event"
	"coder/internal/profile"
	"coder/internal/show"
)

// YoloWarning is said once whenever yolo begins.
const YoloWarning = "yolo: commands run unasked and unchecked, dangerous ones too; only the workspace boundary of file tools and the sandbox hold"

// switchMode changes the mode and puts it on record.
func (o *Orchestrator) switchMode(ctx context.Context, st *turnState, mode string) error {
	was, _ := o.Profile.Current()
	if err := o.Profile.Switch(mode); err != nil {
		return &CommandError{err.Error()}
	}
	return o.tellMode(ctx, st, was.Name)
}

// SwitchMode changes the mode between turns, for a face that has a key for it.
func (o *Orchestrator) SwitchMode(ctx context.Context, mode string, out event.Sink) error {
	return o.switchMode(ctx, &turnState{sink: o.Through(out)}, mode)
}

// tellMode puts the mode in force on record.
func (o *Orchestrator) tellMode(ctx context.Context, st *turnState, was string) error {
	now, preset := o.Profile.Current()
	if err := o.emit(ctx, st, ActorUser, event.ModeChanged{Mode: now.Name, Preset: preset}); err != nil {
		return err
	}
	if now.Name == profile.Yolo && was != profile.Yolo {
		return o.emit(ctx, st, ActorAgent, event.Notice{Level: event.Warn, Text: YoloWarning})
	}
	return nil
}

func modeCommand() command {
	return command{
		name: "mode", args: "[" + strings.Join(profile.Names(), "|") + "]", help: "show the mode, or switch to another",
		run: func(ctx context.Context, in invocation) (string, error) {
			if in.args == "" {
				now, preset := in.Profile.Current()
				return fmt.Sprintf("mode: %s, permissions: %s, checks: %s", now.Name, preset, now.Verify), nil
			}
			return in.toMode(ctx, in.args)
		},
	}
}

// modeCommands are the short forms: /plan is /mode plan.
func modeCommands() (all []command) {
	for _, name := range profile.Names() {
		all = append(all, command{name: name, help: "switch to " + name + " mode", run: func(ctx context.Context, in invocation) (string, error) {
			return in.toMode(ctx, name)
		}})
	}
	return all
}

func (in invocation) toMode(ctx context.Context, name string) (string, error) {
	if err := in.switchMode(ctx, in.st, strings.TrimSpace(name)); err != nil {
		return "", err
	}
	now, _ := in.Profile.Current()
	return "mode: " + now.Name, nil
}

func permissionsCommand() command {
	return command{
		name: "permissions", args: "[PRESET | revoke N | revoke all]", help: "show what is allowed, revoke what was always allowed, or take a preset: " + strings.Join(profile.Presets(), ", "),
		run: func(ctx context.Context, in invocation) (string, error) {
			if which, ok := strings.CutPrefix(in.args+" ", "revoke "); ok {
				return in.revoke(strings.TrimSpace(which))
			}
			if in.args != "" {
				was, _ := in.Profile.Current()
				if err := in.Profile.Preset(in.args); err != nil {
					return "", &CommandError{err.Error()}
				}
				if err := in.tellMode(ctx, in.st, was.Name); err != nil {
					return "", err
				}
			}
			now, preset := in.Profile.Current()
			text := fmt.Sprintf("mode: %s, permissions: %s\n", now.Name, preset)
			if in.Permissions == nil {
				return strings.TrimSpace(text), nil
			}
			return text + aligned(in.Permissions()), nil
		},
	}
}

// revoke forgets what was always allowed.
func (in invocation) revoke(which string) (string, error) {
	switch {
	case in.Revoke == nil:
		return "", &CommandError{"nothing is remembered here"}
	case which == "":
		return "", &CommandError{"say which: /permissions revoke N, with a number of the list, or /permissions revoke all"}
	}
	text, err := in.Revoke(which)
	if err != nil {
		return "", &CommandError{err.Error()}
	}
	return text, nil
}

// aligned writes a table as text in columns.
func aligned(t show.Table) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	rows := t.Rows
	if len(t.Head) > 0 {
		rows = slices.Concat([][]string{t.Head}, t.Rows)
	}
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder never fails
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}
