package cli

import (
	"context"
	"errors"
	"fmt"

	"coder/internal/app"
)

// askTrust asks once whether to trust the project's own settings.
func (t *terminal) askTrust(ctx context.Context) error {
	if !t.app.NeedsTrust("") || t.app.Trust.Declined(t.app.Root) {
		return nil
	}
	fmt.Fprintln(t.printer, t.inv.words.T("This folder has its own settings that change what coder may do:"))
	e, err := app.Entrusts(t.inv.Env.Env, t.inv.flags.Options)
	if err != nil { // nothing to ask about
		fmt.Fprintf(t.printer, "%s\n", t.inv.words.Said("they cannot be used: "+oneLine(err.Error())))
		return nil
	}
	for _, line := range t.inv.lines(e.Rows()) {
		fmt.Fprintf(t.printer, "  %s\n", line)
	}
	yes, err := t.confirm(ctx, t.inv.words.T("Do you trust %s? [y/N] ", t.app.Root), false)
	if err != nil {
		return err
	}
	t.early = nil
	if !yes {
		return t.app.Trust.Decline(t.app.Root)
	}
	if err := e.Give(); err != nil {
		return inputf("%v", err)
	}
	t.inv.load(t.inv.flags) // more settings may apply now
	t.app, err = t.inv.newApp(t.warn)
	return err
}

// withoutProvider sets up a provider if there is none and the user agrees, or lets them choose a model
// if there is only an address; otherwise it offers the demo.
func (t *terminal) withoutProvider(ctx context.Context) (demo bool, err error) {
	err = t.app.CheckProvider()
	if ExitCode(err) != ExitConfig {
		return false, err
	}
	s := setup{app: t.app, console: t.inv.console(t.input, t.printer, t.in, t.out), ask: true, model: t.inv.flags.Model}
	switch e, ok := t.app.EndpointInUse(); {
	case ok && t.app.ModelName() == "":
		s.use = &e
		s.say(t.inv.words.T("No model is set yet for %s.", oneLine(address(e))))
	case ok:
		return false, err
	default:
		s.say(t.inv.words.T("No model is connected yet."))
	}
	err = s.run(ctx)
	if err == nil {
		if s.use != nil {
			t.inv.flags.Model = s.model
		}
		t.inv.load(t.inv.flags) // the settings have changed
		if t.app, err = t.inv.newApp(t.warn); err == nil {
			err = t.app.CheckProvider()
		}
	}
	if !errors.Is(err, errNotWritten) {
		return false, err
	}
	demo, askErr := t.confirm(ctx, t.inv.words.T("See the demo instead? Its model is a script, everything else is real. [Y/n] "), true)
	if askErr != nil || demo {
		return demo, askErr
	}
	return false, err
}

// confirm asks a yes-or-no question on a terminal in its usual mode.
func (t *terminal) confirm(ctx context.Context, question string, byDefault bool) (bool, error) {
	return t.inv.console(t.input, t.printer, t.in, t.out).confirm(ctx, question, byDefault)
}
