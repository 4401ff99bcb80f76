package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"coder/internal/host/lsp"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/model/transport"
	"coder/internal/policy/trust"
	"coder/internal/tool/mcp"
)

// Finding is one checked item, its state, and what to do about it.
type Finding struct {
	Item   string `json:"what"`
	State  string `json:"state"`
	Detail string `json:"found"` // the user's data in it is not translated
	Advice string `json:"do,omitempty"`
	Err    error  `json:"-"` // the provider's; shown with advice
}

// The states of a finding.
const (
	StateGood   = "ok"
	StateNoted  = "note" // works, could be better
	StateBroken = "bad"
)

// doctor checks a workspace.
type doctor struct{ *Workspace }

// examineTimeout limits a single check.
const examineTimeout = 5 * time.Second

// Examine checks everything that coder needs. It changes nothing and shows no key. If
// unread says why the settings are unreadable, it checks what does not depend on them.
func (a *Workspace) Examine(ctx context.Context, unread error) []Finding {
	d := doctor{a}
	settings := d.examineSettings()
	if unread != nil {
		settings = UnreadableSettings(unread)
	}
	list := []Finding{
		{Item: "version", State: StateGood, Detail: fmt.Sprintf("coder %s, %s, %s/%s", Version, runtime.Version(),
			runtime.GOOS, runtime.GOARCH)},
		settings,
		d.examineHome(),
		d.examineFolder(),
		examineProgram(ctx, a.Launcher().Query(a.Root).Command, "git", "required by the git tools: install git"),
		examineProgram(ctx, d.programCommand("rg"), "rg", "optional: many models use ripgrep (rg)"),
		{Item: "shell", State: StateGood, Detail: string(a.shell)},
		d.examineSandbox(ctx),
	}
	list = slices.Concat(list, d.examineDuplicates(), examineServers(), d.examineMCP())
	if unread != nil {
		return list
	}
	return append(list, d.examineProvider(ctx))
}

// UnreadableSettings returns the finding for unreadable settings.
func UnreadableSettings(err error) Finding {
	return Finding{Item: "settings", State: StateBroken, Detail: err.Error(),
		Advice: "correct it: no session starts until then"}
}

// examineMCP checks whether the MCP servers could start, without starting any.
func (a doctor) examineMCP() (list []Finding) {
	for _, s := range a.mcpServers {
		f := Finding{Item: "MCP server " + s.Name, State: StateGood, Detail: s.DisplayAddress()}
		switch {
		case s.Disabled:
			f.State, f.Detail = StateNoted, "switched off"
		case s.Type == mcp.Stdio:
			f.Detail = s.Command // its arguments may hold a key
			file := s.Command
			if strings.Contains(file, "/") && !filepath.IsAbs(file) {
				file = filepath.Join(a.Root, file)
			}
			if _, err := program.LookPath(file); err != nil {
				f.State, f.Advice = StateBroken, fmt.Sprintf("command not found: install it, or correct %s", s.Source)
			}
		}
		list = append(list, f)
	}
	for _, s := range a.mcpSkipped {
		list = append(list, Finding{Item: "MCP server " + s.Name, State: StateNoted, Detail: "skipped", Advice: s.Reason})
	}
	return list
}

func (a doctor) examineSettings() Finding {
	files := strings.Join(a.Report.Files, ", ")
	switch {
	case len(a.Report.Warnings) > 0:
		return Finding{Item: "settings", State: StateNoted, Detail: files, Advice: a.Report.Warnings[0].String()}
	case files == "":
		return Finding{Item: "settings", State: StateGood, Detail: "no file, all defaults"}
	}
	return Finding{Item: "settings", State: StateGood, Detail: files}
}

// examineHome checks whether coder can save its data.
func (a doctor) examineHome() Finding {
	info, _ := os.Stat(a.Home) // the next call reports the error
	switch err := unix.Access(a.Home, unix.W_OK); {
	case info != nil && !info.IsDir():
		return Finding{Item: "state", State: StateBroken, Detail: a.Home,
			Advice: "not a folder: move it, or set CODER_HOME to another"}
	case a.Home == "":
		return Finding{Item: "state", State: StateNoted, Detail: "no home folder found",
			Advice: "set HOME: approvals, trust and session keys are saved below it"}
	case errors.Is(err, unix.ENOENT):
		return Finding{Item: "state", State: StateGood, Detail: a.Home + " will be created when needed"}
	case err != nil:
		return Finding{Item: "state", State: StateBroken, Detail: a.Home,
			Advice: fmt.Sprintf("make it writable (%v): approvals and trust cannot be saved", err)}
	}
	return Finding{Item: "state", State: StateGood, Detail: a.Home}
}

func (a doctor) examineFolder() Finding {
	if err := unix.Access(a.Root, unix.W_OK); err != nil {
		return Finding{Item: "folder", State: StateBroken, Detail: a.Root,
			Advice: fmt.Sprintf("make it writable (%v), or use --no-session-persistence for read-only work", err)}
	}
	if state, err := a.Trust.StateOf(a.Root); err != nil || state != trust.Trusted {
		return Finding{Item: "folder", State: StateNoted, Detail: a.Root,
			Advice: "not trusted: until you run coder trust, its settings may only tighten yours, and its hooks, MCP servers and language servers do not start"}
	}
	return Finding{Item: "folder", State: StateGood, Detail: a.Root}
}

// examineProgram looks for a useful program.
func examineProgram(ctx context.Context, command func(context.Context, ...string) *program.Cmd, name,
	do string) Finding {
	ctx, stop := context.WithTimeout(ctx, examineTimeout)
	defer stop()
	out, err := command(ctx, "--version").Output()
	if refused := (*program.RefusalError)(nil); errors.As(err, &refused) {
		return Finding{Item: name, State: StateNoted, Detail: refused.Error(), Advice: do}
	}
	if err != nil {
		return Finding{Item: name, State: StateNoted, Detail: "not installed", Advice: do}
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return Finding{Item: name, State: StateGood, Detail: line}
}

// programCommand returns a function that builds commands of a program.
func (a doctor) programCommand(name string) func(context.Context, ...string) *program.Cmd {
	return func(ctx context.Context, args ...string) *program.Cmd {
		return a.Launcher().Command(ctx, name, args...)
	}
}

// examineServers looks for a language server for each known language.
func examineServers() (list []Finding) {
	at := make(map[string]int)
	for _, k := range lsp.Kinds() {
		file, err := program.LookPath(k.Command[0])
		i, seen := at[k.Language]
		if !seen {
			i, at[k.Language] = len(list), len(list)
			list = append(list, Finding{
				Item: "language server for " + k.Language, State: StateNoted, Detail: k.Command[0] + " not found",
				Advice: cmp.Or(k.Install, "install it if you work with such files"),
			})
		}
		if err == nil && list[i].State != StateGood {
			list[i] = Finding{Item: "language server for " + k.Language, State: StateGood, Detail: file}
		}
	}
	return list
}

// examineSandbox tries what the system enforces.
func (a doctor) examineSandbox(ctx context.Context) Finding {
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return Finding{Item: "sandbox", State: StateBroken, Detail: err.Error()}
	}
	defer ws.Close()
	c := a.newSafety(ws, nil).confiner
	defer c.Close()
	ctx, stop := context.WithTimeout(ctx, examineTimeout)
	defer stop()
	words := c.Summary(ctx)
	switch {
	case a.Config.Safety.Sandbox == "off":
		return Finding{Item: "sandbox", State: StateNoted, Detail: words,
			Advice: "commands run unconfined, as set by safety.sandbox"}
	case strings.HasPrefix(words, "none"):
		return Finding{Item: "sandbox", State: StateBroken, Detail: words,
			Advice: "commands run unconfined: allow user namespaces, or install bubblewrap"}
	case strings.Contains(words, "not enforced"):
		return Finding{Item: "sandbox", State: StateNoted, Detail: words,
			Advice: "docs/design/security.md lists what each setup enforces"}
	}
	return Finding{Item: "sandbox", State: StateGood, Detail: words}
}

// examineProvider asks the endpoint for its models.
func (a doctor) examineProvider(ctx context.Context) Finding {
	if a.isScripted() {
		return Finding{Item: "provider", State: StateGood, Detail: "a script"}
	}
	c := a.endpoint()
	if err := a.CheckProvider(); err != nil {
		f := Finding{Item: "provider", State: StateBroken, Detail: err.Error(),
			Advice: "correct it: no session starts until then"}
		switch {
		case c.BaseURL == "":
			f.Advice = "set a key, or run coder setup"
		case c.Model == "":
			f.Advice = "choose a model: coder models lists them, coder setup saves one"
		}
		return f
	}
	found := fmt.Sprintf("%s at %s, model %s", c.Kind, singleLine(c.Address()), singleLine(a.ModelName()))
	client, err := a.newClient()
	var list []transport.Model
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, examineTimeout)
		defer stop()
		list, err = client.Models(ctx)
	}
	near, missing := a.findUnlisted(a.ModelName(), list)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Finding{Item: "provider", State: StateBroken, Detail: found,
			Advice: "no answer: check that it is running and that the address is right"}
	case err != nil:
		return Finding{Item: "provider", State: StateBroken, Detail: found, Err: err}
	case near != "":
		return Finding{Item: "provider", State: StateNoted, Detail: found,
			Advice: fmt.Sprintf("the endpoint does not list this model: did you mean %s?", singleLine(near))}
	case missing:
		return Finding{Item: "provider", State: StateNoted, Detail: found,
			Advice: "the endpoint does not list this model: coder models lists its models"}
	}
	return Finding{Item: "provider", State: StateGood, Detail: found}
}
