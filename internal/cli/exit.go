package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/toolrun"
	"coder/internal/app"
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/uip"
	"coder/internal/model/meter"
	"coder/internal/model/provider"
	"coder/internal/policy/confine"
	"coder/internal/record/session"
	"coder/internal/serve"
)

// Exit codes. They are documented in the README and part of the program's contract.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitDenied      = 30 // finished, but at least one call was refused
	ExitPending     = 31 // a question is open
	ExitAuth        = 41
	ExitInput       = 42
	ExitSandbox     = 44
	ExitConfig      = 52
	ExitStepLimit   = 53
	ExitProvider    = 54
	ExitUntrusted   = 55
	ExitUnsaved     = 56 // done, but not everything could be saved to disk
	ExitUnverified  = 57 // done, but the last changes did not pass a check
	ExitBudget      = 58
	ExitInterrupted = 130
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	text string // "" says nothing: it has been said
	err  error
}

func (e *exitError) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return e.text
}

func (e *exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return &exitError{code: ExitUsage, err: message.Errorf(format, args...)}
}

func inputErrorf(format string, args ...any) error {
	return &exitError{code: ExitInput, err: message.Errorf(format, args...)}
}

// unsavedReason is why part of the sessions that this process closed is not on disk.
type unsavedReason struct {
	mu  sync.Mutex // guards why
	err error
}

// recordClose records whether everything in a session just closed is on disk, and returns the error of
// closing it.
func (inv *invocation) recordClose(r serve.CloseResult) error {
	if inv.unsaved == nil || inv.flags.Ephemeral {
		return r.Err
	}
	inv.unsaved.mu.Lock()
	defer inv.unsaved.mu.Unlock()
	inv.unsaved.err = cmp.Or(inv.unsaved.err, r.UnsavedErr)
	return r.Err
}

// finalError returns the program's final error: nil only if err is nil and all of its sessions are on disk.
func (inv *invocation) finalError(err error) error {
	if inv.unsaved == nil {
		return err
	}
	inv.unsaved.mu.Lock()
	defer inv.unsaved.mu.Unlock()
	if err != nil || inv.unsaved.err == nil {
		return err
	}
	return &exitError{code: ExitUnsaved,
		err: message.Errorf("done, but not everything could be saved on disk: %v", inv.unsaved.err)}
}

// ExitCode maps an error to the program's exit code.
func ExitCode(err error) int {
	var (
		known   *exitError
		mistake *app.Error
		refused *provider.Error
		command *orchestrator.CommandError
		newer   *event.NewerFormatError
		untold  serve.Refusal
		unsent  *orchestrator.AttachError
	)
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &known):
		return known.code
	case errors.As(err, &mistake):
		return map[app.Kind]int{app.KindInput: ExitInput, app.KindConfig: ExitConfig,
			app.KindUntrusted: ExitUntrusted}[mistake.Kind]
	case errors.Is(err, orchestrator.ErrStepLimit):
		return ExitStepLimit
	case errors.Is(err, meter.ErrBudget):
		return ExitBudget
	case errors.Is(err, uip.ErrAnswerPending):
		return ExitPending
	case errors.Is(err, confine.ErrUnavailable):
		return ExitSandbox
	case errors.Is(err, toolrun.ErrDeniedAndStopped), errors.Is(err, toolrun.ErrStoppedByHook),
		errors.Is(err, orchestrator.ErrPromptDenied):
		return ExitDenied
	case errors.As(err, &command), errors.As(err, &unsent), errors.As(err, &newer), errors.As(err, &untold),
		errors.Is(err, session.ErrNotFound):
		return ExitInput
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return ExitInterrupted
	case errors.Is(err, provider.ErrAuth):
		return ExitAuth
	case errors.As(err, &refused):
		return ExitProvider
	}
	return ExitError
}

// errorMessage returns the sentence about err that the user sees, with what to do about it, or
// an empty one.
func errorMessage(err error) message.Message {
	var (
		known   *exitError
		mistake *app.Error
		claimed *event.ClaimedError
		newer   *event.NewerFormatError
	)
	switch {
	case err == nil:
		return message.Message{}
	case errors.As(err, &known):
		return message.Of(known)
	case errors.As(err, &mistake):
		return message.Of(mistake)
	case errors.Is(err, syscall.EPIPE):
		return message.New("the output is no longer read, so coder stopped here")
	case errors.As(err, &claimed):
		return message.New("%s; wait for it, or start another session", claimed)
	case errors.As(err, &newer):
		return message.New("%s; coder show %s reads it", newer, newer.Session)
	case errors.Is(err, uip.ErrAnswerPending):
		return pendingHint(err)
	case errors.Is(err, context.Canceled):
		return message.New("interrupted")
	case errors.Is(err, session.ErrNotFound):
		return message.New("%s; coder sessions lists the sessions", err)
	case errors.Is(err, orchestrator.ErrStepLimit):
		return message.New("%s\nraise it with --max-steps or runtime.max_steps", err) // the first line is fixed wording
	}
	said := message.Of(err)
	if said.Format == "ask the model: %w" {
		said = message.Of(said.Args[0].(error))
	}
	if hint := providerHint(err); hint != "" {
		return message.New("%s; %s", said, message.Message{Format: hint})
	}
	return said
}

// pendingHint says which question waits and how to answer it.
func pendingHint(err error) message.Message {
	var w *uip.PendingError
	if !errors.As(err, &w) {
		return message.New("%s; coder tasks shows open questions", err)
	}
	how := "--input TEXT"
	if len(w.Request.Options) > 0 {
		how = answerFlags(w.Request)
	}
	return message.New("%v; answer with: coder respond %s %s (coder tasks shows the choices)", w, w.Request.ID, how)
}

// providerHint says what the user can do about a provider's failure.
func providerHint(err error) string {
	var full *orchestrator.WindowTooSmallError
	switch text := strings.ToLower(err.Error()); {
	case errors.As(err, &full):
		return "" // the error says what to do
	case errors.Is(err, provider.ErrAuth) && (strings.Contains(text, "provider.api_key_command: ") ||
		strings.Contains(text, "coder setup")):
		return "" // the error says what is wrong
	case errors.Is(err, provider.ErrAuth):
		return "check CODER_API_KEY, your vendor's variable or provider.api_key; coder config show shows which is used"
	case errors.Is(err, provider.ErrRateLimited) && strings.Contains(text, "the limit resets at"):
		return "--wait-limit DURATION waits for it"
	case errors.Is(err, provider.ErrUnknownModel):
		return "choose one with --model or CODER_MODEL"
	case errors.Is(err, provider.ErrContextTooLong):
		return "start a new session, or use a model with a larger window"
	case errors.Is(err, provider.ErrUnreachable) && strings.Contains(text, "proxy"):
		return "check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"
	case errors.Is(err, provider.ErrUnreachable):
		return "check CODER_BASE_URL (or provider.base_url) and the network"
	case errors.Is(err, provider.ErrNotAnAPI):
		return "check CODER_BASE_URL (or provider.base_url)"
	case errors.Is(err, provider.ErrBadRequest) && strings.Contains(text, "support") && strings.Contains(text, "tool"):
		return `set provider.tool_mode to "xml" for models that cannot call tools`
	}
	return ""
}
