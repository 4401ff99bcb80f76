package cli

import (
	"context"
	"errors"
	"fmt"

	"coder/internal/app"
)

// askTrust asks once whether to trust the project's own settings.
func (t *terminal) askTrust(ctx context.Context) error {
	if !t.app.NeedsTrust("") || t.app.Trust.HasDeclined(t.app.Root) {
		return nil
	}
	fmt.Fprintln(t.printer, t.invocation.printer.T("This folder has its own settings that change what coder may do:"))
	e, err := app.PreviewTrust(t.invocation.Env.Env, t.invocation.flags.Options)
	if err != nil { // nothing to ask about
		fmt.Fprintf(t.printer, "%s\n", t.invocation.printer.TranslateText("they cannot be used: "+singleLine(err.Error())))
		return nil
	}
	for _, line := range t.invocation.cellLines(e.Rows()) {
		fmt.Fprintf(t.printer, "  %s\n", line)
	}
	yes, err := t.confirm(ctx, t.invocation.printer.T("Do you trust %s? [y/N] ", t.app.Root), false)
	if err != nil {
		return err
	}
	t.earlyMessages = nil
	if !yes {
		return t.app.Trust.Decline(t.app.Root)
	}
	if err := e.Trust(); err != nil {
		return inputErrorf("%v", err)
	}
	t.invocation.loadSettings(t.invocation.flags) // more settings may apply now
	t.app, err = t.invocation.newApp(t.warn)
	return err
}

// setupProvider sets up a provider if there is none and the user agrees, or lets them choose a model
// if there is only an address; otherwise it offers the demo.
func (t *terminal) setupProvider(ctx context.Context) (demo bool, err error) {
	err = t.app.CheckProvider()
	if ExitCode(err) != ExitConfig {
		return false, err
	}
	s := setupFlow{app: t.app, console: t.invocation.newConsole(t.input, t.printer, t.in, t.out), interactive: true,
		model: t.invocation.flags.Model}
	switch e, ok := t.app.CurrentEndpoint(); {
	case ok && t.app.ModelName() == "":
		s.endpointInUse = &e
		s.printLines(t.invocation.printer.T("No model is set yet for %s.", singleLine(publicAddress(e))))
	case ok:
		return false, err
	default:
		s.printLines(t.invocation.printer.T("No model is connected yet."))
	}
	err = s.run(ctx)
	if err == nil {
		if s.endpointInUse != nil {
			t.invocation.flags.Model = s.model
		}
		t.invocation.loadSettings(t.invocation.flags) // the settings have changed
		if t.app, err = t.invocation.newApp(t.warn); err == nil {
			err = t.app.CheckProvider()
		}
	}
	if !errors.Is(err, errSetupAborted) {
		return false, err
	}
	demo, askErr := t.confirm(ctx,
		t.invocation.printer.T("See the demo instead? Its model is a script, everything else is real. [Y/n] "), true)
	if askErr != nil || demo {
		return demo, askErr
	}
	return false, err
}

// confirm asks a yes-or-no question on a terminal in its usual mode.
func (t *terminal) confirm(ctx context.Context, question string, byDefault bool) (bool, error) {
	return t.invocation.newConsole(t.input, t.printer, t.in, t.out).confirm(ctx, question, byDefault)
}
