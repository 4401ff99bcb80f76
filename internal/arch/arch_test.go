// Package arch holds no code: its tests are the plan of the house.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// streets are the folders of the house from the ground up: a package imports
// only from its own street and those before it.
var streets = []string{"core", "host", "config", "authored", "tool", "policy", "model", "record", "agent", "report", "ui", "slash", "app", "serve", "cli", "fleet", "testkit", "arch"}

// plan lists, street by street, every package and what it may import from this
// module, by its last name, which is its own. A package missing here is a
// failed test: adding one is a decision, and this table is where it is written
// down.
var plan = []struct {
	pkg    string
	allows string
}{
	// the words everything is said in
	{everywhere, ""},
	{"core/jsonx", ""},
	{"core/lazy", ""},
	{"core/clip", ""},
	{"core/clock", ""},
	{"core/chat", "jsonx"},
	{"core/display", "jsonx lazy"},
	{"core/uip", "display jsonx"},
	{"core/event", "chat display jsonx uip"},
	{"core/paths", "jsonx"},
	{"core/task", "event uip"},
	{"core/lists", ""},
	{"core/secret", "jsonx lists"},
	{"core/sanitize", "clip secret"},
	{"core/nearest", ""},
	{"core/hosts", ""},

	// this machine: files, processes, languages
	{"host/disk", ""},
	{"host/atomicfile", "disk"},
	{"host/authkey", "atomicfile disk"},
	{"host/repofile", "secret"},
	{"host/program", "atomicfile repofile"},
	{"host/update", "atomicfile disk lazy program repofile"},
	{"host/clipboard", "program"},
	{"host/workspace", "disk lazy nearest repofile"},
	{"host/worktree", "atomicfile event jsonx program repofile sanitize"},
	{"host/shell", "program sanitize"},
	{"host/patch", "lazy"},
	{"host/sandbox", "lazy program repofile"},
	{"host/egress", "hosts"},
	{"host/child", "program"},
	{"host/lsp", "child clip clock jsonx program repofile"},
	{"host/codeindex", "disk workspace"},
	{"host/stdio", ""},
	{"host/keychain", "atomicfile repofile"},
	{"host/pathfind", ""},
	{"config", "hosts jsonx nearest repofile"},

	// what people write for the agent
	{"authored/frontmatter", ""},
	{"authored/rulefile", "frontmatter"},
	{"authored/notes", "clip frontmatter"},
	{"authored/outputstyle", "frontmatter"},
	{"authored/toml", ""},
	{"authored/skills", "clip frontmatter"},
	{"authored/usercommand", "frontmatter"},
	{"authored/mention", "frontmatter workspace"},
	{"authored/plugin", "atomicfile frontmatter jsonx repofile"},

	// what the model can do: the contract, and the tools
	{"tool", "chat display event jsonx"},
	{"tool/dialect", "jsonx lazy"},
	{"tool/files", "chat display patch repofile tool workspace"},
	{"tool/search", "tool workspace"},
	{"tool/bash", "clip display secret shell tool workspace"},
	{"tool/git", "display program repofile sanitize tool workspace"},
	{"tool/web", "chat display egress lazy sanitize tool"},
	{"tool/codenav", "jsonx lsp tool workspace"},
	{"tool/codesearch", "codeindex display tool workspace"},
	{"tool/plan", "display event tool uip"},
	{"tool/delegate", "clip display tool uip"},
	{"tool/skill", "display event skills tool"},
	{"tool/memory", "display notes patch tool workspace"},
	{"tool/structured", "clip display jsonx tool"},
	{"tool/mcp", "atomicfile chat child clip clock display event jsonx lazy program repofile sanitize tool uip"},

	// whether it may
	{"policy", "chat event tool"}, // an opinion holds what the record has of it
	{"policy/risk", "lazy lists policy program repofile tool"},
	{"policy/rule", "policy risk secret tool"},
	{"policy/mode", "policy tool"},
	{"policy/trust", "atomicfile repofile"},
	{"policy/judge", "atomicfile chat display event mode policy program repofile risk rule secret tool"},
	{"policy/confine", "bash egress hosts policy program risk sandbox secret tool uip"},
	{"policy/grant", "chat jsonx policy tool uip"},

	// who is asked: the contract, and the wires
	{"model/jsonscan", ""},
	{"model/provider", "chat clip clock jsonscan"},
	{"model/catalogue", ""},
	{"model/meter", "catalogue chat event provider"},
	{"model/transport", "chat clip jsonscan lazy provider sanitize"},
	{"model/openai", "chat jsonscan provider transport"},
	{"model/responses", "chat jsonscan provider transport"},
	{"model/anthropic", "chat jsonscan provider transport"},
	{"model/gemini", "chat jsonscan provider transport"},
	{"model/textcalls", "chat dialect jsonx lazy provider"},
	{"model/scripted", "chat clock clip provider"},

	// what is kept
	{"record/session", ""},
	{"record/audit", "event task"},
	{"record/seal", "authkey chat event jsonx"},
	{"record/timeline", "event"},
	{"record/typed", "atomicfile jsonx repofile sanitize"},
	{"record/undo/blob", "atomicfile disk"},
	{"record/undo/gitindex", ""},
	{"record/gitstate", "gitindex repofile"},
	{"record/undo", "blob clip disk event gitindex gitstate program repofile secret tool workspace"},
	{"record/past", "event git gitstate program repofile secret undo workspace worktree"},
	{"record/golden", "atomicfile event gitstate jsonx past program repofile secret worktree"},
	{"record/store/mem", "event session"},
	{"record/store/jsonl", "atomicfile audit authkey disk event jsonx repofile session"},
	{"record/store/failover", "event session"},

	// what thinks and acts
	{"agent/conversation", "chat event"},
	{"agent/broker", "event uip"},
	{"agent/inbox", "atomicfile authkey jsonx uip"},
	{"agent/toolrun", "chat clip dialect display event grant jsonscan jsonx policy secret tool uip"},
	{"agent/prompt", "chat clip rulefile"},
	{"agent/compact", "chat clip event jsonx lazy"},
	{"agent/complexity", ""},
	{"agent/verify", "chat clip display event mode risk tool"},
	{"agent/bang", "risk tool"},
	{"agent/subagent", "clip frontmatter policy tool"},
	{"agent/hooks", "bash chat clip dialect event jsonx nearest tool toolrun uip"},
	{"agent/orchestrator", "chat clock clip compact complexity conversation display event frontmatter hooks jsonx mention mode nearest prompt provider rulefile secret skills tool toolrun uip usercommand verify"},
	{"agent/supervisor", "authkey broker chat conversation display event jsonx mode orchestrator sanitize seal session task timeline tool toolrun uip undo"},
	{"agent/alike", "compact lazy patch"},
	{"agent/rerun", "alike bash chat compact event golden lazy mode orchestrator past paths provider secret supervisor tool uip"},

	// what is read of a session
	{"report/telemetry", "chat event"},
	{"report/provenance", "chat event jsonx patch uip"},
	{"report/asof", "event provenance uip"},
	{"report/bundle", "audit event jsonx paths"},
	{"report/fulltext", "chat display event jsonx uip"},
	{"report/export", "chat display event frontmatter lazy sanitize secret session uip"},
	{"report/transcript", "chat clip event orchestrator repofile secret"},
	{"report/usage", "chat event"},
	{"report/review", "jsonx sanitize"},
	{"report/ship", "atomicfile event jsonx repofile telemetry"},
	{"report/ledger", "chat compact conversation event lazy prompt sanitize"},

	// what people see, and how they answer
	{"ui/events", "chat display event jsonx uip"},
	{"ui/streamjson", "chat clip event jsonx"},
	{"ui/drive", "chat orchestrator uip"},
	{"ui/acp", "chat clip display drive event jsonx orchestrator tool uip"},
	{"ui/control", "bash chat dialect display drive events jsonx orchestrator streamjson uip"},
	{"ui/plain", "chat display event sanitize"},
	{"ui/cells", ""},
	{"ui/term/ink", "cells"},
	{"ui/term/syntax", "ink"},
	{"ui/term/markdown", "ink syntax"},
	{"ui/term", "chat display event ink markdown sanitize syntax uip"},
	{"ui/i18n", ""},
	{"ui/browser", "audit chat clip display event export sanitize session uip"},
	{"ui/lineedit", "cells chat ink sanitize"},
	{"ui/tty", "cells lineedit"},
	{"ui/repl", "cells chat event ink lazy lineedit sanitize term tool tty uip"},

	// what people type, and what puts it all together
	{"slash", "atomicfile chat compact config conversation display event frontmatter fulltext git ledger mcp mode notes orchestrator outputstyle patch prompt provenance risk sanitize session skills tool trust undo"},
	{"app", "anthropic asof atomicfile audit authkey bang bash bundle catalogue chat clipboard codeindex codenav codesearch config confine conversation delegate dialect disk display egress event export failover files frontmatter fulltext gemini git gitindex gitstate golden hooks hosts inbox jsonl jsonx judge keychain ledger lsp mcp mem memory meter mode nearest notes openai orchestrator outputstyle past patch plan plugin policy program prompt provenance provider repofile rerun responses risk rule rulefile sandbox sanitize scripted seal search secret session shell ship skill skills slash structured subagent supervisor task telemetry textcalls toml tool toolrun transcript transport trust typed uip undo update usage usercommand verify web workspace worktree"},
	{"serve", "app drive event inbox orchestrator sanitize supervisor uip"},
	{"cli", "acp alike app asof atomicfile audit browser chat clock config confine control dialect display drive event events export fulltext hooks i18n ink jsonl jsonx judge ledger lineedit mcp mention meter mode nearest orchestrator patch pathfind plain plugin policy program provenance provider repl repofile rerun review rule sanitize scripted serve session slash stdio streamjson structured subagent supervisor task term tool toolrun trust tty typed uip undo usage verify worktree"},

	// beyond one machine: the second program, coder-fleet, in a module of its own
	{"fleet/jetstore", "event jsonx session"},
	{"fleet/engine", "atomicfile repofile"},
	{"fleet/queue", "clock jetstore jsonx uip"},
	{"fleet/checkout", "program worktree"},
	{"fleet/worker", "app atomicfile authkey chat checkout cli engine event jetstore jsonl jsonx mode program queue repofile sanitize seal task uip verify"},
	{"fleet/fleetcli", "app atomicfile authkey chat checkout cli display engine event events i18n jetstore jsonx mode nearest program queue repofile sanitize term uip worker worktree"},

	// what only tests and measurements use
	{"testkit/eventtest", "chat display event uip"},
	{"testkit/faultdisk", "disk"},
	{"testkit/lsptest", "program"},
	{"testkit/tooltest", "tool"},
	{"testkit/providertest", "chat provider"},
	{"testkit/faultserver", "jsonx provider"},
	{"testkit/sessiontest", "session"},
	{"testkit/rendertest", "chat display event uip"},
	{"testkit/bench/baseline", ""},
	{"testkit/bench", "codeindex codesearch files git program search tool undo workspace"},
	{"testkit/film", "program"},
	{"testkit/figures", ""},
	{"testkit/clients", ""},
	{"testkit/release", "program"},
	{"testkit/mutate", "program"},
	{"arch", ""},
}

// everywhere is the package that every other may import: errors are sentences for people.
const everywhere = "core/message"

func TestEveryPackageIsInThePlanAndKeepsToIt(t *testing.T) {
	planned := make(map[string]int) // by its last name
	street := func(pkg string) int {
		first, _, _ := strings.Cut(pkg, "/")
		return slices.Index(streets, first)
	}
	for i, p := range plan {
		name := path.Base(p.pkg)
		if j, twice := planned[name]; twice {
			t.Errorf("plan: %s and %s have one name", p.pkg, plan[j].pkg)
		}
		planned[name] = i
		if at := street(p.pkg); at < 0 || i > 0 && at < street(plan[i-1].pkg) {
			t.Errorf("plan: %s does not stand in its street", p.pkg)
		}
		for _, dep := range strings.Fields(p.allows) {
			if j, ok := planned[dep]; !ok || j >= i {
				t.Errorf("plan: %s allows %s, which is not below it", p.pkg, dep)
			}
		}
	}
	found := make(map[string]bool)
	for _, got := range append(list(t), listBelow(t, top("testkit"))...) {
		i, ok := planned[path.Base(got.name)]
		if !ok || plan[i].pkg != got.name {
			t.Errorf("package %s is not in the plan", got.name)
			continue
		}
		if got.docs != 1 {
			t.Errorf("package %s has %d package comments, want one", got.name, got.docs)
		}
		for dep := range got.imports {
			if dep != everywhere && !slices.Contains(strings.Fields(plan[i].allows), path.Base(dep)) {
				t.Errorf("%s imports %s, which the plan does not allow", got.name, dep)
			}
		}
		for _, dep := range strings.Fields(plan[i].allows) {
			if !got.imports[plan[planned[dep]].pkg] {
				t.Errorf("plan: %s no longer imports %s", got.name, dep)
			}
		}
		found[got.name] = true
	}
	for _, p := range plan {
		if !found[p.pkg] {
			t.Errorf("plan: there is no package %s", p.pkg)
		}
	}
}

// Names that say nothing about what a package is for.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "shared", "misc", "base", "manager", "lib"}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	for _, p := range list(t) {
		for part := range strings.SplitSeq(p.name, "/") {
			if slices.Contains(emptyNames, part) {
				t.Errorf("package %s: %q is not a name", p.name, part)
			}
		}
	}
}

// The world is read in one place, so that everything else can be tested
// without it. Each row names a call and the packages that may make it.
var worldly = []struct{ call, allowed string }{
	{"os.Getenv", "app cli"},
	{"os.Environ", "app cli"},
	{"os.Getwd", "app cli"},
	{"os.Exit", ""},
	{"fmt.Print(", ""},
	{"fmt.Printf(", ""},
	{"fmt.Println(", ""},
	{"http.DefaultClient", ""},
	{"fmt.Errorf(", "core/message"}, // whose Errorf keeps the sentence for translation
}

func TestOnlyTheWiringReadsTheWorld(t *testing.T) {
	for _, p := range list(t) {
		for _, w := range worldly {
			if slices.Contains(strings.Fields(w.allowed), p.name) {
				continue
			}
			for file, text := range p.files {
				if strings.Contains(text, w.call) {
					t.Errorf("%s uses %s", file, strings.TrimSuffix(w.call, "("))
				}
			}
		}
	}
}

// An expression at the top of a package is compiled at every start.
func TestExpressionsAreCompiledWhenTheyAreUsed(t *testing.T) {
	for _, p := range list(t) {
		for file, text := range p.files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				vars, ok := d.(*ast.GenDecl)
				if !ok {
					continue
				}
				ast.Inspect(vars, func(n ast.Node) bool {
					if _, later := n.(*ast.FuncLit); later {
						return false
					}
					if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "MustCompile" {
						t.Errorf("%s compiles an expression at every start; lazy.Regexp does not", file)
					}
					return true
				})
			}
		}
	}
}

// TestOnlyTheFleetKnowsItsServer: the module of the program that people start every
// day does not even name the server that a fleet runs on.
func TestOnlyTheFleetKnowsItsServer(t *testing.T) {
	text, err := os.ReadFile(top("go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for _, not := range []string{"nats-io", "coder/fleet"} {
		if strings.Contains(string(text), not) {
			t.Errorf("go.mod requires %s", not)
		}
	}
}

// TestShellSyntaxIsReadInOnePlace: any package that wants to know what a command line runs asks
// policy/risk, so that no two of them see different commands in one line.
func TestShellSyntaxIsReadInOnePlace(t *testing.T) {
	for _, p := range list(t) {
		for file, text := range p.files {
			if p.name != "policy/risk" && p.name != "arch" && strings.Contains(text, "mvdan.cc/sh") {
				t.Errorf("%s reads shell syntax: ask risk.Read", file)
			}
		}
	}
}

// openers are the calls that open a file or list a folder by its name.
var openers = map[string][]string{
	"os":       {"Open", "OpenFile", "ReadFile", "ReadDir", "OpenRoot", "OpenInRoot", "DirFS", "Create", "WriteFile", "CopyFS"},
	"filepath": {"Walk", "WalkDir", "Glob"},
	"unix":     {"Open", "Openat", "Openat2"},
	"syscall":  {"Open", "Openat"},
	"ioutil":   {"ReadFile", "ReadDir", "WriteFile"},
}

// mayOpen are the files and packages of the house that open others themselves, and why
// they may. All else reads through repofile or the workspace: what lies under a
// name was chosen by whoever made the repository.
var mayOpen = map[string]string{
	"host/repofile/repofile.go":       "this is the way: without following links, and the person's own files",
	"host/workspace/workspace.go":     "the handle that everything in a workspace goes through",
	"app/authority.go":                "lists its own folders, which is never waited for",
	"host/workspace/watch_linux.go":   "asks the kernel about mounts and watches",
	"host/workspace/walk.go":          "many files of one directory, without links, pipes or waiting",
	"record/typed/typed.go":           "adds to a file in a folder of the person's own",
	"record/undo/blob/blob.go":        "the handle of its own folder; regular files only, without waiting",
	"arch/arch_test.go":               "reads the house itself",
	"arch/docs_test.go":               "reads the house itself",
	"arch/settings_test.go":           "reads the house itself",
	"host/atomicfile/atomicfile.go":   "handles of our own directories, never what is in them; no pipe is waited for",
	"agent/inbox/inbox.go":            "letters in a folder of the person's own, bounded, without links or waiting",
	"authored/plugin/book.go":         "lists its own folder, which is never waited for",
	"authored/plugin/pin.go":          "a folder that the person named: regular files, without links or waiting",
	"host/authkey/authkey.go":         "a file of the person's own that must not be a link",
	"host/disk/disk.go":               "files of our own directories, without links or waiting",
	"record/store/jsonl/":             "its own logs and snapshots: regular files, without links or waiting",
	"cli/prunecmd.go":                 "lists its own folders, which is never waited for",
	"app/leftover.go":                 "lists its own folders, which is never waited for",
	"cli/bugcmd.go":                   "writes into a folder that it has just made",
	"app/sweep.go":                    "lists its own folders, which is never waited for",
	"host/workspace/dir_linux.go":     "directories of the workspace, without links, in one call",
	"app/sessions.go":                 "lists the folders of sessions, which is never waited for",
	"app/golden.go":                   "lists its own folders and reads the name of a branch, which is never waited for",
	"record/golden/golden.go":         "writes into a folder that it has just made",
	"host/worktree/stage.go":          "lists and removes its own folders; writes into one that it has just made, and reads by way of repofile",
	"record/past/repository.go":       "writes the configuration of a repository that it has just made",
	"app/sessionstart.go":             "lists its own folder, which is never waited for",
	"record/gitstate/gitstate.go":     "lists the folders of git, which is never waited for; writes into those of a copy",
	"app/startfiles.go":               "lists its own folders and those of git, which is never waited for; writes into a folder that it has just made",
	"app/store.go":                    "makes a new file in its own folder",
	"report/ship/ship.go":             "adds to a file that the person named; it must be regular",
	"app/toolkit.go":                  "makes a new file for a plan",
	"cli/demo.go":                     "writes into a folder that it has just made",
	"cli/democrash.go":                "writes into a folder that it has just made",
	"host/worktree/fill.go":           "writes into a folder that it has just made, and reads what a checkout put there",
	"host/worktree/print.go":          "the handle of a folder that it made; opens no file in it",
	"cli/watchcmd.go":                 "the note in a lock, bounded, without links or waiting; asks the kernel who locks what",
	"cli/editor.go":                   "writes into a folder that it has just made",
	"app/startenv_linux.go":           "its own memory, by way of the kernel",
	"host/program/view.go":            "lists its own folder, which is never waited for",
	"host/sandbox/attend_linux.go":    "asks the kernel about processes",
	"host/sandbox/backends_linux.go":  "asks the kernel what it allows",
	"host/sandbox/bounds_linux.go":    "asks the kernel about memory",
	"host/sandbox/cgroup_linux.go":    "control groups of the kernel, which are files",
	"host/sandbox/listening_linux.go": "asks the kernel about sockets and processes",
	"host/sandbox/landlock_linux.go":  "lists folders, which is never waited for",
	"policy/confine/hide.go":          "tells a certificate from a key: what counts as a secret by its name, regular, bounded, without waiting",
	"policy/confine/home.go":          "lists folders of the home, which is never waited for",
	"policy/confine/links.go":         "lists folders of the home, which is never waited for",
	"host/sandbox/places.go":          "makes a file to see whether that can be done; lists folders, which is never waited for",
	"host/sandbox/witness_linux.go":   "folders, to know their names, without opening what is in them",
	"host/sandbox/mount_linux.go":     "mount points in a namespace of its own",
	"host/sandbox/planted.go":         "lists hooks and work trees, which is never waited for",
	"host/sandbox/protected.go":       "lists folders of submodules, which is never waited for",
	"policy/judge/world.go":           "lists folders, which is never waited for",
	"host/lsp/document.go":            "lists folders, which is never waited for",
	"host/shell/":                     "asks the kernel about processes",
	"fleet/worker/place.go":           "folders of its own, which it lists and locks, never what is in them",
	"fleet/worker/restore.go":         "lists folders of its own, which is never waited for",
	"fleet/worker/task.go":            "a bundle that it has just made in a folder of its own",
}

func TestWhatTheProgramReadsByItselfIsOpenedInOneWay(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range list(t) {
		for file := range p.files {
			name := within(file)
			for _, call := range usesIn(t, file, openers) {
				if mayOpen[name] == "" {
					name = path.Dir(name) + "/" // all of the package may
				}
				if used[name] = true; mayOpen[name] == "" {
					t.Errorf("%s uses %s: use repofile, or say in mayOpen why not", name, call)
				}
			}
		}
	}
	for name := range mayOpen {
		if !used[name] {
			t.Errorf("%s opens nothing any more: strike it from mayOpen", name)
		}
	}
}

// starters are the calls that start a program, whatever package makes them.
var starters = map[string][]string{
	"os":      {"StartProcess"},
	"syscall": {"ForkExec", "Exec", "StartProcess", "SYS_EXECVE", "SYS_EXECVEAT"},
	"unix":    {"Exec", "SYS_EXECVE", "SYS_EXECVEAT"},
}

// unfound are the functions of host/program that start a file without finding it
// outside of what commands may write.
var unfound = map[string][]string{"program": {"TrustedCommand", "ConfinedCommand", "ForkExec", "Exec"}}

// mayStart are the files and packages that may use those, and why.
var mayStart = map[string]string{
	"host/sandbox/":              "is the sandbox: runs this program as the helper, and what is confined",
	"host/shell/":                "what puts a command into the sandbox, and a shell of a fixed list",
	"host/update/install.go":     "this program itself, the newer one before it takes its place",
	"host/child/":                "servers within the sandbox; those outside are found again by Door.Admit",
	"testkit/lsptest/lsptest.go": "a server for tests",
	"fleet/worker/worker.go":     "this program itself",
	"cli/democrash.go":           "this program itself",
	"cli/fleetcmd.go":            "the fleet's program, where you asked for it by name",
	"testkit/bench/":             "measures the program that you name",
	"testkit/film/":              "shows the program that you name",
	"testkit/mutate/":            "runs go, which you have",
	"testkit/release/":           "runs go and the packager, which you have, and what they built",
}

// TestProgramsAreStartedByOnePackage: all others are given commands by a Door, or
// say here why not.
func TestProgramsAreStartedByOnePackage(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range slices.Concat(list(t), listBelow(t, top("cmd")), listBelow(t, top("fleet/cmd")), listBelow(t, top("testkit"))) {
		if p.name == "host/program" {
			continue
		}
		for file, text := range p.files {
			name := within(file)
			if strings.Contains(text, `"os/exec"`) {
				t.Errorf("%s imports os/exec: use host/program", name)
			}
			for _, call := range usesIn(t, file, starters) {
				t.Errorf("%s uses %s: use host/program", name, call)
			}
			for _, call := range usesIn(t, file, unfound) {
				if mayStart[name] == "" {
					name = path.Dir(name) + "/" // all of the package may
				}
				if used[name] = true; mayStart[name] == "" {
					t.Errorf("%s uses %s: use program.Door, or say in mayStart why not", name, call)
				}
			}
		}
	}
	for name := range mayStart {
		if !used[name] {
			t.Errorf("%s starts nothing any more: strike it from mayStart", name)
		}
	}
}

// temporary is why a file may make temporary files: who removes what it leaves
// if the program is killed.
var temporary = map[string]string{
	"host/authkey/authkey.go":       "in our home, swept at the start",
	"host/atomicfile/atomicfile.go": "beside what is ours, or in a folder of ours: swept at the start",
	"cli/editor.go":                 "in our home, swept at the start",
	"host/worktree/stage.go":        "removed at the end, else swept by the next rerun",
	"cli/demo.go":                   "the person is told where it is, and it stays",
}

// TestTemporaryFilesAreSwept: whatever makes files that are to go says who
// removes them if it cannot.
func TestTemporaryFilesAreSwept(t *testing.T) {
	makers := map[string][]string{"os": {"CreateTemp", "MkdirTemp"}, "ioutil": {"TempFile", "TempDir"}}
	used := make(map[string]bool)
	for _, p := range list(t) {
		for file := range p.files {
			name := within(file)
			for _, call := range usesIn(t, file, makers) {
				if used[name] = true; temporary[name] == "" {
					t.Errorf("%s uses %s: write with whole or workspace, or say in temporary who sweeps it", name, call)
				}
			}
		}
	}
	for name := range temporary {
		if !used[name] {
			t.Errorf("%s makes nothing any more: strike it from temporary", name)
		}
	}
}

// usesIn lists the uses of functions in a file, called or handed on.
func usesIn(t *testing.T, file string, functions map[string][]string) (calls []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]string) // of packages, by what the file calls them
	for _, i := range f.Imports {
		base := path.Base(strings.Trim(i.Path.Value, `"`))
		if names[base] = base; i.Name == nil {
			continue
		}
		if names[i.Name.Name] = base; i.Name.Name == "." && functions[base] != nil {
			calls = append(calls, "all of "+base)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(functions[names[pkg.Name]], s.Sel.Name) {
			calls = append(calls, names[pkg.Name]+"."+s.Sel.Name)
		}
		return true
	})
	return calls
}

type pkg struct {
	name    string
	docs    int
	imports map[string]bool
	files   map[string]string
}

// list is what people are given: test support and commands are not in it. It reads the tree itself rather than asking "go list": the go command
// then knows which files this test depends on, and never serves a stale pass.
func list(t *testing.T) []pkg {
	t.Helper()
	fleet := slices.DeleteFunc(listBelow(t, top("fleet")), func(p pkg) bool { return strings.HasPrefix(p.name, "fleet/cmd/") })
	return append(listBelow(t, ".."), fleet...)
}

// top is a folder or file of the repository.
func top(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

// within is the name of a file or folder in the house: below internal, or else in the repository.
func within(file string) string { return strings.TrimLeft(filepath.ToSlash(file), "./") }

// locate is the file of a name in the house.
func locate(name string) string {
	if street, _, _ := strings.Cut(name, "/"); street == "fleet" || street == "testkit" {
		return top(name)
	}
	return filepath.Join("..", filepath.FromSlash(name))
}

func listBelow(t *testing.T, top string) (pkgs []pkg) {
	t.Helper()
	err := filepath.WalkDir(top, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		p := pkg{
			name:    within(dir),
			imports: make(map[string]bool), files: make(map[string]string),
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") && d.Name() != "arch" {
				continue
			}
			if err := p.read(name); err != nil {
				return err
			}
		}
		if len(p.files) > 0 {
			pkgs = append(pkgs, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

func (p *pkg) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p.files[name] = string(text)
	if p.name == "arch" {
		p.files[name] = "" // it names what it forbids
	}
	if f.Doc.Text() != "" {
		p.docs++
	}
	for _, spec := range f.Imports {
		if dep, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "coder/"); ok {
			p.imports[strings.TrimPrefix(dep, "internal/")] = true
		}
	}
	return nil
}
