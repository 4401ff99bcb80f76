// Package app builds the parts of coder from its configuration: a workspace's
// settings, the store of its sessions, the model, the judge, the tools and a session's
// engine. Only app and cli read the environment, the clock and random numbers.
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
	"coder/internal/core/event"
	"coder/internal/core/message"
	"coder/internal/core/sanitize"
	"coder/internal/host/disk"
	"coder/internal/host/program"
	"coder/internal/host/shell"
	"coder/internal/host/update"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/report/export"
	"coder/internal/tool/files"
	"coder/internal/tool/structured"
)

// Env is coder's environment.
type Env struct {
	Environ []string
	Dir     string // the working directory; empty if there is none
	Now     func() time.Time
	Managed string // folder of the managed settings; "" is that of the machine. Tests name another
	// Exe is the path of this program, which runs itself to confine commands.
	Exe string
	// Sleep, if set, replaces the real clock's sleep between attempts.
	Sleep func(context.Context, time.Duration) error
	// TimeoutFactor multiplies short timeouts, for busy machines. Zero means one.
	TimeoutFactor int
	// Releases, if set, replaces the build's source of newer versions.
	Releases update.Source
	// WrapStore, if set, wraps the session store. Tests use it for failures.
	WrapStore func(event.Store) event.Store
	// Disk, if set, is the disk for sessions and undo data. Tests let it fail.
	Disk Disk
}

// Disk writes files, and the folder with the undo data.
type Disk interface {
	disk.Disk
	InRoot(*os.Root) disk.Disk
}

// Getenv returns a variable's value, or "" if it is unset.
func (e Env) Getenv(name string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(e.Environ[i], "="); ok && k == name {
			return v
		}
	}
	return ""
}

// Options are one run's options in addition to the configuration.
type Options struct {
	Overrides
	Dir          string        // the workspace, if not the working directory
	WaitLimit    time.Duration // how long a turn may wait for a limit to end
	Mode         string
	NoYolo       bool   // never switch to yolo mode
	SystemPrompt string // replaces coder's own
	AppendSystem string // appended to the system prompt
	Script       string // a file that plays the model
	Ephemeral    bool   // save nothing on disk
	IgnoreConfig bool   // read no settings, rules, skills etc. of the home and the project
	HasUser      bool   // a user is present to answer questions

	AllowTools, DenyTools []rule.Spec
	OnlyTools             *[]rule.Spec // if set, the only tools of coder's own
	Schema                []byte       // the answer's JSON schema, if any
	AddDirs               []string     // more folders for the file tools

	MCPConfig []string // files with MCP servers, or their content
	StrictMCP bool     // only these servers

	PluginDirs []string // plugins for this run only
	Driver     Driver   // the driving program, if any

	Language export.Locale // the language of texts for people
}

// Overrides are settings of one run.
type Overrides struct {
	ConfigFile    string
	Profile       string // from the settings
	Provider      string // a preset, or an address
	Model         string
	FallbackModel string
	Set           []string // any settings, as KEY=VALUE
	MaxSteps      int
	Effort        string // reasoning effort
	MaxBudgetUSD  float64
	AutoApprove   bool
	Lang          string
	NoColor       bool
}

// Driver is what a driving program adds to a session. It counts as the user's own.
type Driver struct {
	Hooks    []hooks.Hook // its functions on events
	Callback func(ctx context.Context, id string, input json.RawMessage) (json.RawMessage, error)
	Agents   []subagent.Definition
	Servers  []string // MCP servers inside it
	Relay    func(ctx context.Context, server string, message json.RawMessage) (json.RawMessage, error)
	Buffer   files.Buffer // unsaved files in the user's editor
}

// Site is a folder with its settings and its stored data, and the programs that coder may start there.
type Site struct {
	Settings
	Env     Env
	Options Options
	// Store opens the workspace's stored data, once.
	Store func() *Store
	// Replay, if set, replaces everything that a rerun session must not reach.
	Replay *Replay

	warn             func(string)
	launcher         program.Launcher // for programs outside the sandbox; see Door
	originWorkspaces []string         // workspaces of the one that made this one
	shell            shell.Program    // runs every command
	initialTrustOnce sync.Once        // reads the folder's initial trust into initiallyTrusted
	initiallyTrusted bool             // the folder was trusted
}

// Workspace is what outlives the sessions in a folder: its settings and stored data, what users
// added to coder, the models, and the user's choices.
type Workspace struct {
	*Site
	*Authored
	*Setup
	ModeState *mode.State // the mode of work

	chosenTheme atomic.Pointer[string] // the screen's, chosen during the session
	guards      serverFacts[string]    // project files that restrict other agents, by content
	bangDirect  atomic.Bool            // the user chose in this process to run their ! commands without approval
	answer      *structured.Answer     // nil unless answers need a certain form
}

// New puts coder together with a workspace's settings. It reports problems that do not prevent work to warn.
func New(env Env, o Options, s Settings, warn func(string)) (*Workspace, error) {
	site := &Site{Settings: s, Env: env, Options: o, warn: warn, shell: shell.Find()}
	site.Store = sync.OnceValue(site.openStore)
	site.launcher = program.New(env.Environ, site.untrustedDirs)
	if err := site.checkDataDir(); err != nil {
		return nil, err
	}
	for _, w := range s.warnings {
		warn(w)
	}
	denied, err := site.managedDenials()
	if err != nil {
		return nil, err
	}
	site.Options.DenyTools = append(slices.Clone(o.DenyTools), denied...)
	added := &Extensions{Site: site}
	modes, err := site.initMode()
	answer, badSchema := newAnswer(o.Schema)
	if err := errors.Join(site.checkRecordRequired(), err, site.checkModelInfo(), added.read(), badSchema,
		site.findAddDirs()); err != nil {
		return nil, err
	}
	site.showTrustHint()
	added.readTelemetry()
	if dir := site.Config.Runtime.WorkspaceRoot; dir != "" {
		if site.Root, err = absoluteDir(site.Project, dir); err != nil {
			return nil, err
		}
		if err := site.checkDataDir(); err != nil {
			return nil, err
		}
	}
	keys := &Keys{Site: site, newConcealer: sync.OnceValue(added.concealer), known: make(map[string]string)}
	models := &Models{Archive: &Archive{Keys: keys}}
	return &Workspace{
		Site: site, Authored: &Authored{Extensions: added, shownMessages: make(map[string]bool)},
		Setup: &Setup{Models: models}, ModeState: modes, answer: answer,
	}, nil
}

// findAddDirs resolves the additional folders from the working
// directory. They apply to file tools and to commands.
func (a *Site) findAddDirs() error {
	named := a.Options.AddDirs
	a.Options.AddDirs = nil
	for _, dir := range named {
		found, err := absoluteDir(a.Env.Dir, dir)
		if err != nil {
			return err
		}
		a.Options.AddDirs = append(a.Options.AddDirs, found)
	}
	return nil
}

// newAnswer reads the schema for answers, if there is one.
func newAnswer(schema []byte) (*structured.Answer, error) {
	if schema == nil {
		return nil, nil
	}
	answer, err := structured.New(schema)
	if err != nil {
		return nil, inputErrorf("--json-schema: %v", err)
	}
	return answer, nil
}

// StructuredAnswer returns the ended turn's answer in the requested form, or nil.
func (a *Workspace) StructuredAnswer() json.RawMessage { return a.answer.Take() }

// checkDataDir returns an error if coder must not write to the data folder.
func (a *Site) checkDataDir() error {
	if a.Options.Ephemeral {
		return nil
	}
	info, err := os.Lstat(a.dataDir())
	switch {
	case err != nil:
		return nil // creating it later will report any problem
	case info.Mode()&fs.ModeSymlink != 0:
		if isOutsideLink(a.Root, a.dataDir()) {
			return configErrorf("%s is a link that leads outside the project; remove it, or use --no-session-persistence",
				a.dataDir())
		}
	case !info.IsDir():
		return configErrorf("%s is not a folder; remove it, or use --no-session-persistence", a.dataDir())
	}
	return nil
}

// dataDir returns the folder for coder's data about the workspace.
func (a *Site) dataDir() string { return filepath.Join(a.Root, ".coder") }

// Error is an error that the user can fix.
type Error struct {
	Kind Kind
	Err  error
}

// Kind is the kind of an Error.
type Kind int

// The kinds of errors.
const (
	KindInput Kind = iota
	KindConfig
	KindUntrusted // the workspace
)

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func inputErrorf(format string, args ...any) error {
	return &Error{KindInput, message.Errorf(format, args...)}
}

func configErrorf(format string, args ...any) error {
	return &Error{KindConfig, message.Errorf(format, args...)}
}

// NewSessionID returns an id that sorts by time: seconds, a fraction of a second, and random digits.
func NewSessionID(now time.Time) string {
	var b [2]byte
	_, _ = rand.Read(b[:]) // never fails
	fraction := now.Nanosecond() / (1_000_000_000 >> 16)
	return fmt.Sprintf("sess_%010d_%04x%s", now.Unix(), min(fraction, 1<<16-1), hex.EncodeToString(b[:]))
}

// IsSessionID reports whether s is a valid session id.
func IsSessionID(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r))
	})
}

// NewID returns prefix with twelve random characters.
func NewID(prefix string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + "_" + strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))[:12]
}

// singleLine prepares foreign text for a list.
func singleLine(s string) string { return sanitize.Line(s, 400) }
