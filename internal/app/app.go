// Package app builds the parts of the program from its configuration: the
// settings of a workspace, the store of its sessions, the model, the judge, the
// tools and the engine of a session. With cli it is the only package that reads
// the environment, the clock and chance.
package app

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"coder/internal/agent/hooks"
	"coder/internal/agent/subagent"
	"coder/internal/agent/verify"
	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/core/sanitize"
	"coder/internal/host/disk"
	"coder/internal/host/lsp"
	"coder/internal/host/program"
	"coder/internal/host/shell"
	"coder/internal/host/update"
	"coder/internal/model/provider"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/report/export"
	"coder/internal/report/telemetry"
	"coder/internal/slash"
	"coder/internal/tool"
	"coder/internal/tool/bash"
	"coder/internal/tool/files"
	"coder/internal/tool/mcp"
	"coder/internal/tool/structured"
)

// Env is the world the program works in.
type Env struct {
	Environ []string
	Dir     string // the working directory; empty if there is none
	Now     func() time.Time
	Managed string // folder of the managed settings; "" is that of the machine. Tests name another
	// Exe is the path of this program, which runs itself to confine commands.
	Exe string
	// Sleep, if set, passes the time between attempts instead of real time.
	Sleep func(context.Context, time.Duration) error
	// Patience is how many times as long as usual is waited for what should come soon: a
	// busy machine takes its time. Zero is once.
	Patience int
	// Releases, if set, is where newer versions are instead of where the build says.
	Releases update.Source
	// WrapStore, if set, wraps the store of sessions. Tests break it.
	WrapStore func(event.Store) event.Store
	// Disk, if set, is what sessions, and what can be undone, are written to.
	// Tests let it fail.
	Disk Disk
}

// Disk is what is written to: files, and the directory of what can be undone.
type Disk interface {
	disk.Disk
	Below(*os.Root) disk.Disk
}

// Getenv looks a variable up; an unset one is empty.
func (e Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Options are what one run asks for beside the configuration.
type Options struct {
	Dir          string // the workspace, if it is not the working directory
	ConfigFile   string
	Profile      string // of the settings
	Provider     string // a preset, or an address
	Model        string
	Set          []string // settings of this run, as KEY=VALUE
	MaxSteps     int
	Effort       string // how hard the model is to think
	MaxBudgetUSD float64
	WaitLimit    time.Duration // how long a turn may wait for the end of a limit
	Mode         string
	NoYolo       bool // the mode is one that nothing can lead to
	AutoApprove  bool
	Lang         string
	NoColor      bool
	SystemPrompt string // in place of our own
	AppendSystem string // added to the system prompt
	Script       string // a file that plays the model
	Ephemeral    bool   // nothing is kept on disk
	Bare         bool   // no settings, rules, skills and the like of the home and the project are read
	Attended     bool   // a person is there to be asked

	AllowTools, DenyTools []rule.Spec
	OnlyTools             *[]rule.Spec // if set, no other tools of our own
	Schema                []byte       // of the answer, if it is to have a certain form
	FallbackModel         string
	AddDirs               []string // further folders the file tools may use

	MCPConfig []string // files of MCP servers, or their text itself
	StrictMCP bool     // there are no others

	PluginDirs []string // plugins of this run alone
	Driver     Driver   // the program that drives this one, if one does

	Speech export.Speech // how what is written down for people speaks
}

// Driver is what a program that drives a session brings to it. It counts as the
// person's own.
type Driver struct {
	Hooks    []hooks.Hook // functions of its own on events
	Callback func(ctx context.Context, id string, input json.RawMessage) (json.RawMessage, error)
	Agents   []subagent.Definition
	Servers  []string // MCP servers that are a part of it
	Relay    func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	Buffer   files.Buffer // what the person has not saved in their editor
}

// App is the program put together for one workspace.
type App struct {
	Settings
	Env     Env
	Options Options
	Modes   *mode.State // the mode of work
	// Play, if set, plays the model instead of the one that is configured.
	Play provider.Provider
	// Terminal, if set, sends bytes to the person's terminal.
	Terminal func(bytes string)
	// JobEnded, if set before a session is opened, is called when a command in the background
	// has ended that no call waits for.
	JobEnded func(slash.Job)
	// OwnKeys are the keys that the person bound, and what they do.
	OwnKeys [][2]string
	// Recorded, if set, stands for what a session that is run again must not reach.
	Recorded *Recorded
	// Store opens what is kept of the workspace, once.
	Store func() *Store

	// models are those that the endpoint of this address says it has, for completion.
	models struct {
		of    string
		names []string
	}
	door       program.Door // to programs that run outside the sandbox; see Door
	elsewhere  []string     // workspaces of the program that this one was made by
	warn       func(string)
	shell      shell.Program // runs every command
	hooks      []hooks.Hook  // commands on events, of the settings
	servers    []lsp.Kind    // language servers of the settings
	mcpServers []mcp.Server
	mcpLeft    []mcp.Status // those that are not used
	plugins    []usedPlugin
	telemetry  telemetry.Settings
	mcp        *mcp.Host                     // of the session in use; nil if there are none
	chosen     atomic.Pointer[string]        // the model that /model chose
	theme      atomic.Pointer[string]        // of the screen, chosen during the session
	effort     atomic.Pointer[string]        // how hard the model is to think, by whoever drives the session
	noted      sync.Once                     // how the folder stood in the book of trust at the start
	inBook     bool                          // it was trusted there
	jobs       atomic.Pointer[bash.Jobs]     // of the session in use
	switched   atomic.Pointer[config.Config] // the settings of the profile that /model chose
	windows    remembered[heardWindow]       // of models, by the word of their servers
	beside     provider.Beside               // what servers are asked in the session in use
	blind      provider.Blind                // the models that refused pictures
	lists      remembered[[]string]          // of models, by the word of their servers
	guards     remembered[string]            // of other agents in the project, by their content
	keys       keyring                       // printed by commands
	spending   spending                      // of the user today, where managed settings limit it
	live       live                          // what sessions ask
	bangDirect atomic.Bool                   // the person chose in this process that their ! commands run unasked
	told       map[string]bool               // what was said once
	lib        *library                      // once it is asked for

	answer *structured.Answer // nil unless answers are to have a certain form

	checks      atomic.Pointer[verify.Checks] // of the session that is open
	turn        atomic.Pointer[tally]         // what its turn takes
	judge       *judge.Judge                  // once a session is open
	memoryIndex atomic.Pointer[string]        // nil: not read yet
	asked       sync.Map                      // calls by their ids that nobody could be asked about, as they were judged
	set         tool.Set                      // what the model may call, once a session is open
}

// New puts the program together under the settings of a workspace. What is wrong
// with them and does not keep it from working is told to warn.
func New(env Env, o Options, s Settings, warn func(string)) (*App, error) {
	a := &App{Settings: s, Env: env, Options: o, warn: warn, shell: shell.Find(), told: make(map[string]bool)}
	a.Store = sync.OnceValue(a.openStore)
	a.door = program.New(env.Environ, a.places)
	if err := a.checkData(); err != nil {
		return nil, err
	}
	for _, w := range s.warnings {
		warn(w)
	}
	denied, err := a.denied()
	if err != nil {
		return nil, err
	}
	a.Options.DenyTools = append(slices.Clone(a.Options.DenyTools), denied...)
	if err := errors.Join(a.checkKept(), a.newState(), a.checkModelInfo(), a.readServers(), a.readHooks(), a.readPlugins(), a.readMCP(), a.readSchema(), a.findAddDirs()); err != nil {
		return nil, err
	}
	a.tellTrust()
	a.readTelemetry()
	if dir := a.Config.Runtime.WorkspaceRoot; dir != "" {
		var err error
		if a.Root, err = absolute(a.Project, dir); err != nil {
			return nil, err
		}
		return a, a.checkData()
	}
	return a, nil
}

// findAddDirs makes out the further folders, from where the person is. They mean
// the same to file tools and to commands.
func (a *App) findAddDirs() error {
	named := a.Options.AddDirs
	a.Options.AddDirs = nil
	for _, dir := range named {
		found, err := absolute(a.Env.Dir, dir)
		if err != nil {
			return err
		}
		a.Options.AddDirs = append(a.Options.AddDirs, found)
	}
	return nil
}

// readSchema reads the form that answers are to have.
func (a *App) readSchema() (err error) {
	if a.Options.Schema == nil {
		return nil
	}
	if a.answer, err = structured.New(a.Options.Schema); err != nil {
		return inputf("--json-schema: %v", err)
	}
	return nil
}

// Structured is the answer of the turn that ended, in the form that was asked
// for; nil if none was.
func (a *App) Structured() json.RawMessage { return a.answer.Take() }

// checkData refuses a data folder that is not ours to write to.
func (a *App) checkData() error {
	if a.Options.Ephemeral {
		return nil
	}
	info, err := os.Lstat(a.data())
	switch {
	case err != nil:
		return nil // it will be made, or its making will say why not
	case info.Mode()&fs.ModeSymlink != 0:
		if leadsOut(a.Root, a.data()) {
			return configf("%s is a link that leads outside the project; remove it, or use --no-session-persistence", a.data())
		}
	case !info.IsDir():
		return configf("%s is not a folder; remove it, or use --no-session-persistence", a.data())
	}
	return nil
}

// data is the folder that holds what the program keeps about the workspace.
func (a *App) data() string { return filepath.Join(a.Root, ".coder") }

// Error is something that the person can put right.
type Error struct {
	Kind Kind
	Err  error
}

// Kind says what is wrong.
type Kind int

// What can be wrong.
const (
	BadInput Kind = iota
	BadConfig
	Untrusted // the workspace
)

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func inputf(format string, args ...any) error {
	return &Error{BadInput, fmt.Errorf(format, args...)}
}

func configf(format string, args ...any) error {
	return &Error{BadConfig, fmt.Errorf(format, args...)}
}

// NewSessionID makes an id that sorts by time: the second, then the part of it,
// then chance.
func NewSessionID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	fraction := now.Nanosecond() / (1_000_000_000 >> 16)
	return fmt.Sprintf("sess_%010d_%04x%s", now.Unix(), min(fraction, 1<<16-1), hex.EncodeToString(b[:]))
}

// ValidSessionID reports whether s can name a session.
func ValidSessionID(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	})
}

// NewID makes an id of twelve random characters behind a prefix that says
// what it names.
func NewID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:12]
}

// oneLine is foreign text made fit for a list.
func oneLine(s string) string { return sanitize.Line(s, 400) }
