package orchestrator

import (
	"context"

	"coder/internal/core/event"
	"coder/internal/policy/mode"
)

// YoloWarning is shown whenever yolo mode begins.
const YoloWarning = "yolo: commands run without approval or checks, dangerous ones too; only the file tools' workspace boundary and the sandbox apply"

// switchMode changes and records the mode.
func (o *Orchestrator) switchMode(ctx context.Context, st *turnState, mode string) error {
	was, _ := o.Mode.Current()
	if err := o.Mode.Switch(mode); err != nil {
		return &CommandError{err.Error()}
	}
	return o.recordMode(ctx, st, was.Name)
}

// SwitchMode changes the mode between turns, for a face with a key for it.
func (o *Orchestrator) SwitchMode(ctx context.Context, mode string, out event.Sink) error {
	return o.switchMode(ctx, &turnState{sink: o.RecordingSink(out)}, mode)
}

// recordMode records the current mode.
func (o *Orchestrator) recordMode(ctx context.Context, st *turnState, was string) error {
	now, preset := o.Mode.Current()
	if err := o.emit(ctx, st, ActorUser, event.ModeChanged{Mode: now.Name, Preset: preset}); err != nil {
		return err
	}
	if now.Name == mode.Yolo && was != mode.Yolo {
		return o.warn(ctx, st, YoloWarning)
	}
	return nil
}
