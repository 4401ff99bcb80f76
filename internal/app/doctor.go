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
	What  string `json:"what"`
	State string `json:"state"`
	Found string `json:"found"` // the user's data in it is not translated
	Do    string `json:"do,omitempty"`
	Err   error  `json:"-"` // the provider's; shown with advice
}

// The states of a finding.
const (
	Good   = "ok"
	Noted  = "note" // works, could be better
	Broken = "bad"
)

// doctor checks a workspace.
type doctor struct{ *Workspace }

// examineTime limits a single check.
const examineTime = 5 * time.Second

// Examine checks everything that coder needs. It changes nothing and shows no key. If
// unread says why the settings are unreadable, it checks what does not depend on them.
func (a *Workspace) Examine(ctx context.Context, unread error) []Finding {
	d := doctor{a}
	settings := d.examineSettings()
	if unread != nil {
		settings = Unread(unread)
	}
	list := []Finding{
		{What: "version", State: Good, Found: fmt.Sprintf("coder %s, %s, %s/%s", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)},
		settings,
		d.examineHome(),
		d.examineFolder(),
		examineProgram(ctx, a.Door().Query(a.Root).Command, "git", "required by the git tools: install git"),
		examineProgram(ctx, d.command("rg"), "rg", "optional: many models use ripgrep (rg)"),
		{What: "shell", State: Good, Found: string(a.shell)},
		d.examineSandbox(ctx),
	}
	list = slices.Concat(list, d.examineName(), examineServers(), d.examineMCP())
	if unread != nil {
		return list
	}
	return append(list, d.examineProvider(ctx))
}

// Unread returns the finding for unreadable settings.
func Unread(err error) Finding {
	return Finding{What: "settings", State: Broken, Found: err.Error(), Do: "correct it: no session starts until then"}
}

// examineMCP checks whether the MCP servers could start, without starting any.
func (a doctor) examineMCP() (list []Finding) {
	for _, s := range a.mcpServers {
		f := Finding{What: "MCP server " + s.Name, State: Good, Found: s.Where()}
		switch {
		case s.Disabled:
			f.State, f.Found = Noted, "switched off"
		case s.Type == mcp.Stdio:
			f.Found = s.Command // its arguments may hold a key
			file := s.Command
			if strings.Contains(file, "/") && !filepath.IsAbs(file) {
				file = filepath.Join(a.Root, file)
			}
			if _, err := program.OnPath(file); err != nil {
				f.State, f.Do = Broken, fmt.Sprintf("command not found: install it, or correct %s", s.From)
			}
		}
		list = append(list, f)
	}
	for _, s := range a.mcpLeft {
		list = append(list, Finding{What: "MCP server " + s.Name, State: Noted, Found: "skipped", Do: s.Why})
	}
	return list
}

func (a doctor) examineSettings() Finding {
	files := strings.Join(a.Report.Files, ", ")
	switch {
	case len(a.Report.Warnings) > 0:
		return Finding{What: "settings", State: Noted, Found: files, Do: a.Report.Warnings[0].String()}
	case files == "":
		return Finding{What: "settings", State: Good, Found: "no file, all defaults"}
	}
	return Finding{What: "settings", State: Good, Found: files}
}

// examineHome checks whether coder can save its data.
func (a doctor) examineHome() Finding {
	info, _ := os.Stat(a.Home) // the next call reports the error
	switch err := unix.Access(a.Home, unix.W_OK); {
	case info != nil && !info.IsDir():
		return Finding{What: "state", State: Broken, Found: a.Home, Do: "not a folder: move it, or set CODER_HOME to another"}
	case a.Home == "":
		return Finding{What: "state", State: Noted, Found: "no home folder found", Do: "set HOME: approvals, trust and session keys are saved below it"}
	case errors.Is(err, unix.ENOENT):
		return Finding{What: "state", State: Good, Found: a.Home + " will be created when needed"}
	case err != nil:
		return Finding{What: "state", State: Broken, Found: a.Home, Do: fmt.Sprintf("make it writable (%v): approvals and trust cannot be saved", err)}
	}
	return Finding{What: "state", State: Good, Found: a.Home}
}

func (a doctor) examineFolder() Finding {
	if err := unix.Access(a.Root, unix.W_OK); err != nil {
		return Finding{What: "folder", State: Broken, Found: a.Root, Do: fmt.Sprintf("make it writable (%v), or use --no-session-persistence for read-only work", err)}
	}
	if state, err := a.Trust.Of(a.Root); err != nil || state != trust.Trusted {
		return Finding{What: "folder", State: Noted, Found: a.Root, Do: "not trusted: until you run coder trust, its settings may only tighten yours, and its hooks, MCP servers and language servers do not start"}
	}
	return Finding{What: "folder", State: Good, Found: a.Root}
}

// examineProgram looks for a useful program.
func examineProgram(ctx context.Context, command func(context.Context, ...string) *program.Cmd, name, do string) Finding {
	ctx, stop := context.WithTimeout(ctx, examineTime)
	defer stop()
	out, err := command(ctx, "--version").Output()
	if refused := (*program.Refusal)(nil); errors.As(err, &refused) {
		return Finding{What: name, State: Noted, Found: refused.Error(), Do: do}
	}
	if err != nil {
		return Finding{What: name, State: Noted, Found: "not installed", Do: do}
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return Finding{What: name, State: Good, Found: line}
}

// command returns a function that builds commands of a program.
func (a doctor) command(name string) func(context.Context, ...string) *program.Cmd {
	return func(ctx context.Context, args ...string) *program.Cmd { return a.Door().Command(ctx, name, args...) }
}

// examineServers looks for a language server for each known language.
func examineServers() (list []Finding) {
	at := make(map[string]int)
	for _, k := range lsp.Kinds() {
		file, err := program.OnPath(k.Command[0])
		i, seen := at[k.Language]
		if !seen {
			i, at[k.Language] = len(list), len(list)
			list = append(list, Finding{
				What: "language server for " + k.Language, State: Noted, Found: k.Command[0] + " not found",
				Do: cmp.Or(k.Install, "install it if you work with such files"),
			})
		}
		if err == nil && list[i].State != Good {
			list[i] = Finding{What: "language server for " + k.Language, State: Good, Found: file}
		}
	}
	return list
}

// examineSandbox tries what the system enforces.
func (a doctor) examineSandbox(ctx context.Context) Finding {
	ws, err := workspace.Open(a.Root)
	if err != nil {
		return Finding{What: "sandbox", State: Broken, Found: err.Error()}
	}
	defer ws.Close()
	c := a.newSafety(ws, nil).confiner
	defer c.Close()
	ctx, stop := context.WithTimeout(ctx, examineTime)
	defer stop()
	words := c.Words(ctx)
	switch {
	case a.Config.Safety.Sandbox == "off":
		return Finding{What: "sandbox", State: Noted, Found: words, Do: "commands run unconfined, as set by safety.sandbox"}
	case strings.HasPrefix(words, "none"):
		return Finding{What: "sandbox", State: Broken, Found: words, Do: "commands run unconfined: allow user namespaces, or install bubblewrap"}
	case strings.Contains(words, "not enforced"):
		return Finding{What: "sandbox", State: Noted, Found: words, Do: "docs/design/security.md lists what each setup enforces"}
	}
	return Finding{What: "sandbox", State: Good, Found: words}
}

// examineProvider asks the endpoint for its models.
func (a doctor) examineProvider(ctx context.Context) Finding {
	if a.scripted() {
		return Finding{What: "provider", State: Good, Found: "a script"}
	}
	c := a.endpoint()
	if err := a.CheckProvider(); err != nil {
		f := Finding{What: "provider", State: Broken, Found: err.Error(), Do: "correct it: no session starts until then"}
		switch {
		case c.BaseURL == "":
			f.Do = "set a key, or run coder setup"
		case c.Model == "":
			f.Do = "choose a model: coder models lists them, coder setup saves one"
		}
		return f
	}
	found := fmt.Sprintf("%s at %s, model %s", c.Kind, oneLine(c.Address()), oneLine(a.ModelName()))
	client, err := a.client()
	var list []transport.Model
	if err == nil {
		ctx, stop := context.WithTimeout(ctx, examineTime)
		defer stop()
		list, err = client.Models(ctx)
	}
	near, missing := a.unlisted(a.ModelName(), list)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Finding{What: "provider", State: Broken, Found: found, Do: "no answer: check that it is running and that the address is right"}
	case err != nil:
		return Finding{What: "provider", State: Broken, Found: found, Err: err}
	case near != "":
		return Finding{What: "provider", State: Noted, Found: found, Do: fmt.Sprintf("the endpoint does not list this model: did you mean %s?", oneLine(near))}
	case missing:
		return Finding{What: "provider", State: Noted, Found: found, Do: "the endpoint does not list this model: coder models lists its models"}
	}
	return Finding{What: "provider", State: Good, Found: found}
}
