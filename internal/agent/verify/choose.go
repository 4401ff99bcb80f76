package verify

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"coder/internal/policy/risk"
)

// whitelist are the only commands that are run by themselves, letter by letter.
var whitelist = []string{
	"go test ./...",
	"pytest -q",
	"npm test -- --watch=false",
	"pnpm test -- --watch=false",
	"yarn test --watch=false",
	"cargo test",
	"mvn -q test",
	"gradle test",
	"./gradlew test",
}

// Allowed reports whether command is one of the whitelist.
func Allowed(command string) bool { return slices.Contains(whitelist, command) }

// Input is what a choice rests on. Exists and Read look into the workspace;
// without them the kind of project stays unknown.
type Input struct {
	UserText   string
	Configured []string // workflow.verify_commands
	Edited     []string
	Exists     func(path string) bool
	Read       func(path string) ([]byte, error)
	// List, which may be nil, is the names in a folder; those of folders end with a slash.
	List func(dir string) []string
	// Installed, which may be nil, reports whether there is a program of that name.
	Installed func(program string) bool
}

// Choice is the command to run, or "" if there is none, and the commands that
// were wished for but are not on the whitelist. Blind says that there are checks, and
// none of them looks at what was edited.
type Choice struct {
	Command string
	Refused []string
	Blind   bool
	// Unfit, where there is no command, is why the one there would be cannot be used.
	Unfit string
}

// Choose picks the command: what the person named, else the first of the
// configured ones, else what suits the project. What is not on the whitelist is
// refused, and the search goes on.
func Choose(in Input) Choice {
	var c Choice
	if c.take(named(in.UserText)) || c.take(in.Configured) {
		return c
	}
	edited := len(in.Edited) > 0
	if in.Edited = slices.DeleteFunc(slices.Clone(in.Edited), elsewhere); edited && len(in.Edited) == 0 {
		return c // the project's tests do not look at it
	}
	command, below := byModule(in)
	if command != "" {
		c.Command = command
		return c
	}
	suited, blind := byProject(in)
	c.Blind = !c.take(suited) && (blind || below)
	if c.Command == "" && !c.Blind && in.Read != nil {
		unfit := unfitRunner(in)
		for _, file := range in.Edited {
			unfit = cmp.Or(unfit, unfitAbove(in, file))
		}
		if unfit != "" {
			c.Unfit = fmt.Sprintf("the test script ends with %s, which does not accept the --watch=false that a check adds; ask the model to run the tests", unfit)
		}
	}
	return c
}

// elsewhere reports whether a file lies outside the project, in a folder that was added.
func elsewhere(file string) bool {
	file = path.Clean(file)
	return path.IsAbs(file) || file == ".." || strings.HasPrefix(file, "../")
}

// take accepts the first allowed candidate.
func (c *Choice) take(candidates []string) bool {
	for _, command := range candidates {
		command = strings.TrimSpace(command)
		switch {
		case command == "":
		case Allowed(command):
			c.Command = command
			return true
		case !slices.Contains(c.Refused, command):
			c.Refused = append(c.Refused, command)
		}
	}
	return false
}

// project is a kind of project: the languages it is written in and how it is
// tested, "" if it is not such a project.
type project struct {
	endings []string
	command func(Input) string
}

var projects = []project{
	{[]string{".go"}, ifThere("go test ./...", "go.mod")},
	{[]string{".rs"}, ifThere("cargo test", "Cargo.toml")},
	{[]string{".java", ".kt", ".scala"}, ifThere("mvn -q test", "pom.xml")},
	{[]string{".java", ".kt", ".kts", ".groovy", ".scala"}, gradle},
	{[]string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte"}, node},
	{[]string{".py"}, python},
}

// maxModules is how many modules one check tests.
const maxModules = 4

// byModule is the test of the modules that edited files belong to, each run in its folder;
// the root may be one, and one for each of its languages. It is empty where there is one
// at the root alone; blind says that one is below it whose test looks at nothing of what was
// edited.
func byModule(in Input) (test string, blind bool) {
	if in.Exists == nil {
		return "", false
	}
	var tests []string
	below := false
	for _, file := range in.Edited {
		dir, command, cannotSee := moduleOf(in, path.Clean(file))
		test, blind = inFolder(dir, command), blind || cannotSee
		if command != "" && !slices.Contains(tests, test) && len(tests) < maxModules {
			tests, below = append(tests, test), below || dir != "."
		}
	}
	if len(tests) < 2 && !below {
		return "", blind
	}
	if there := slices.DeleteFunc(slices.Clone(tests), in.lacks); len(there) > 0 { // the others are not kept from running
		tests = there
	}
	if len(tests) == 1 {
		return tests[0], false
	}
	return "(" + strings.Join(tests, ") && (") + ")", false
}

// lacks reports whether a program is missing that a check begins with.
func (in Input) lacks(check string) bool { return Missing(check, in.Installed) != "" }

// Missing is the first program that is not there of those that a check, or the parts of one,
// begins with; "" if all are, or installed is nil.
func Missing(check string, installed func(program string) bool) string {
	for _, c := range deciding(risk.Read(check)) {
		if installed != nil && !strings.Contains(c.Name, "/") && !installed(c.Name) {
			return c.Name
		}
	}
	return ""
}

// moduleOf finds the nearest folder above a file that is a project of its language, or
// any project if the file is data that its tests may read, and its test.
func moduleOf(in Input, file string) (dir, command string, blind bool) {
	if path.IsAbs(file) || strings.HasPrefix(file, "../") || !IsCode(file) {
		return "", "", false
	}
	for dir = path.Dir(file); ; dir = path.Dir(dir) {
		there := in
		there.Exists = func(name string) bool { return in.Exists(path.Join(dir, name)) }
		if dir != "." {
			there.List, there.Edited = nil, nil // tests that lie about are run from the root
		}
		if in.Read != nil {
			there.Read = func(name string) ([]byte, error) { return in.Read(path.Join(dir, name)) }
		}
		data := ""
		for _, p := range projects {
			switch command = p.command(there); {
			case !Allowed(command):
			case slices.Contains(p.endings, path.Ext(file)):
				return dir, command, false
			case data == "":
				data = command
			}
		}
		if data != "" && !isForeign(file) {
			return dir, data, false
		}
		if blind = blind || data != ""; dir == "." {
			return "", "", blind
		}
	}
}

// inFolder is a command that is run in a folder.
func inFolder(dir, command string) string {
	if dir == "." {
		return command
	}
	if strings.Trim(dir, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") != "" || strings.HasPrefix(dir, "-") {
		dir = "./'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return "cd " + dir + " && " + command
}

// byProject suggests the test of the project's kind; where there are several
// kinds, of the one the edited files belong to. What was edited may be nothing that any of
// them could look at.
func byProject(in Input) (suited []string, blind bool) {
	if in.Exists == nil {
		return nil, false
	}
	var others []string
	for _, p := range projects {
		command := p.command(in)
		switch {
		case command == "":
		case slices.ContainsFunc(in.Edited, func(f string) bool { return slices.Contains(p.endings, path.Ext(f)) }):
			suited = append(suited, command)
		case len(in.Edited) == 0 || slices.ContainsFunc(in.Edited, func(f string) bool { return IsCode(f) && !isForeign(f) }):
			others = append(others, command) // data that tests may read
		default:
			blind = true
		}
	}
	return append(suited, others...), blind
}

// isForeign reports whether only programs of a language of their own, or of none, look
// at a file: a test in another language does not, unless the file lies where tests keep
// what they read.
func isForeign(file string) bool {
	file = strings.ToLower(file)
	if strings.Contains(file, "testdata") || strings.Contains(file, "fixture") || strings.Contains(file, "golden") {
		return false
	}
	name := path.Base(file)
	return slices.Contains(foreignEndings, path.Ext(name)) || slices.Contains(foreignNames, name) || strings.HasPrefix(file, ".github/") ||
		strings.HasPrefix(name, "dockerfile") || strings.HasPrefix(name, "docker-compose")
}

var (
	foreignEndings = []string{
		".go", ".rs", ".java", ".kt", ".kts", ".groovy", ".scala", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte", ".py", ".pyi", ".rb", ".php", ".pl", ".lua",
		".swift", ".cs", ".fs", ".vb", ".dart", ".ex", ".exs", ".erl", ".hs", ".clj", ".r", ".jl", ".nim", ".zig", ".sh", ".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd",
		".css", ".scss", ".sass", ".less", ".ipynb", ".vim", ".el", ".tf", ".nix", ".png", ".jpg", ".jpeg", ".gif", ".ico", ".svg", ".pdf", ".log",
	}
	foreignNames = []string{
		"makefile", "gnumakefile", "justfile", "containerfile", "procfile", "vagrantfile", "codeowners", ".gitignore", ".gitattributes", ".dockerignore", ".editorconfig",
		".mailmap", ".gitlab-ci.yml", ".travis.yml", ".pre-commit-config.yaml", ".prettierrc", ".prettierignore", ".eslintignore", ".npmignore", ".env.example",
	}
)

func ifThere(command string, files ...string) func(Input) string {
	return func(in Input) string {
		if slices.ContainsFunc(files, in.Exists) {
			return command
		}
		return ""
	}
}

func gradle(in Input) string {
	switch {
	case !in.Exists("build.gradle") && !in.Exists("build.gradle.kts"):
		return ""
	case in.Exists("gradlew"):
		return "./gradlew test"
	}
	return "gradle test"
}

func node(in Input) string {
	manager, ok := testScript(in)
	switch {
	case !ok:
		return ""
	case in.Exists("pnpm-lock.yaml"):
		return "pnpm test -- --watch=false"
	case in.Exists("yarn.lock"):
		return "yarn test --watch=false"
	case in.Exists("package-lock.json"):
		return "npm test -- --watch=false"
	case strings.HasPrefix(manager, "pnpm@"):
		return "pnpm test -- --watch=false"
	case strings.HasPrefix(manager, "yarn@"):
		return "yarn test --watch=false"
	}
	return "npm test -- --watch=false"
}

// testScript reports whether package.json says how to test, and which package
// manager it wants. What npm writes into a new file says nothing.
func testScript(in Input) (manager string, ok bool) {
	if in.Read == nil {
		return "", false
	}
	script, manager := scriptIn(in)
	return manager, script != "" && !strings.Contains(script, "no test specified") && unfitRunner(in) == ""
}

// scriptIn is what package.json says how to test, and which package manager it wants.
func scriptIn(in Input) (script, manager string) {
	data, err := in.Read("package.json")
	if err != nil {
		return "", ""
	}
	var p struct {
		Scripts map[string]any `json:"scripts"`
		Manager string         `json:"packageManager"`
	}
	if json.Unmarshal(data, &p) != nil {
		return "", ""
	}
	script, _ = p.Scripts["test"].(string)
	return strings.TrimSpace(script), p.Manager
}

// unfitAbove is the runner that is unfit in the test script of the nearest folder above a file
// that has one; "" if none is.
func unfitAbove(in Input, file string) string {
	if path.IsAbs(file) || strings.HasPrefix(path.Clean(file), "../") || !IsCode(file) {
		return ""
	}
	for dir := path.Dir(path.Clean(file)); dir != "."; dir = path.Dir(dir) {
		there := in
		there.Read = func(name string) ([]byte, error) { return in.Read(path.Join(dir, name)) }
		if script, _ := scriptIn(there); script != "" {
			return unfitRunner(there)
		}
	}
	return ""
}

// unfitRunner is what a test script ends with, if that is nothing that can be given
// --watch=false: node's own runner takes it for the wish to watch, whatever its value, and
// others fail by it. It is "" if there is no such thing.
func unfitRunner(in Input) string {
	script, _ := scriptIn(in)
	var words []string // of the last command
	for _, c := range risk.Read(script).Simple {
		if c.By == risk.Line {
			words = append([]string{c.Name}, c.Args...)
		}
	}
	for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains(runsAnother, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	for _, flag := range words[1:] {
		if slices.Contains(unfitWith[strings.TrimRight(name, "0123456789.")], flag) {
			return name + " " + flag
		}
	}
	if slices.Contains(strictRunners, name) {
		return name
	}
	return ""
}

var (
	runsAnother   = []string{"npx", "env", "cross-env", "exec", "time", "command"}
	strictRunners = strings.Fields("make gmake just go cargo pytest tox nox rake rspec bundle prove phpunit composer dotnet mvn gradle gradlew tsc eslint prettier deno " +
		"grep egrep fgrep rg diff cmp test [ ls cat find docker cmake ctest ninja bazel swift zig")
	unfitWith = map[string][]string{
		"node": {"--test", "-e", "--eval", "-p", "--print", "-pe"}, "tsx": {"--test"}, "python": {"-m"}, "perl": {"-e"}, "ruby": {"-e"},
	}
)

func python(in Input) string {
	markers := []string{"pytest.ini", "pyproject.toml", "setup.cfg"}
	if in.List != nil { // elsewhere these belong to a folder of tests, and not to a project
		markers = append(markers, "conftest.py", "tests/conftest.py", "tests/__init__.py")
	}
	configured := slices.ContainsFunc(markers, in.Exists)
	if configured || len(in.Edited) == 0 && pythonTested(in, "") || slices.ContainsFunc(in.Edited, func(f string) bool { return pythonTested(in, f) }) {
		return "pytest -q"
	}
	return ""
}

// pythonTested reports whether a file is a test in Python, or there are some: beside it, at
// the root, or in a folder for them.
func pythonTested(in Input, file string) bool {
	switch {
	case isPythonTest(file):
		return true
	case in.List == nil:
		return false
	}
	return slices.ContainsFunc([]string{path.Dir(file), "."}, func(dir string) bool { return hasPythonTests(in, dir, 0) }) ||
		slices.ContainsFunc([]string{"tests", "test"}, func(dir string) bool { return hasPythonTests(in, dir, 1) })
}

// hasPythonTests reports whether a folder has tests, or one so far below it has.
func hasPythonTests(in Input, dir string, depth int) bool {
	return slices.ContainsFunc(in.List(dir), func(name string) bool {
		folder, ok := strings.CutSuffix(name, "/")
		return isPythonTest(name) || ok && depth > 0 && hasPythonTests(in, path.Join(dir, folder), depth-1)
	})
}

func isPythonTest(file string) bool {
	name, ok := strings.CutSuffix(path.Base(file), ".py")
	return ok && (strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test"))
}
