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

// allowedCommands lists the only commands that run automatically, in their exact form.
var allowedCommands = []string{
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

// IsAllowed reports whether command is on the whitelist.
func IsAllowed(command string) bool { return slices.Contains(allowedCommands, command) }

// ChoiceInput is the basis of a choice. Exists and Read access the
// workspace; without them the kind of project stays unknown.
type ChoiceInput struct {
	UserText    string
	Configured  []string // workflow.verify_commands
	EditedFiles []string
	FileExists  func(path string) bool
	ReadFile    func(path string) ([]byte, error)
	// ListDir, which may be nil, returns the names in a folder; folders end with a slash.
	ListDir func(dir string) []string
	// IsInstalled, which may be nil, reports whether a program is installed.
	IsInstalled func(program string) bool
}

// Choice is the command to run, or "", and the requested commands that are not on
// the whitelist. Blind means that checks exist, but none looks at the edited files.
type Choice struct {
	Command         string
	Refused         []string
	NoneCoversEdits bool
	// UnfitReason, without a command, is why the available one cannot be used.
	UnfitReason string
}

// ChooseCheck selects the command: the one that the user named, otherwise the first configured one,
// otherwise the project's. It refuses commands that are not on the whitelist and continues the search.
func ChooseCheck(in ChoiceInput) Choice {
	var c Choice
	if c.acceptFirst(requestedChecks(in.UserText)) || c.acceptFirst(in.Configured) {
		return c
	}
	edited := len(in.EditedFiles) > 0
	if in.EditedFiles = slices.DeleteFunc(slices.Clone(in.EditedFiles), isOutside); edited && len(in.EditedFiles) == 0 {
		return c // the project's tests do not cover these files
	}
	command, below := moduleTests(in)
	if command != "" {
		c.Command = command
		return c
	}
	suited, blind := projectTests(in)
	c.NoneCoversEdits = !c.acceptFirst(suited) && (blind || below)
	if c.Command == "" && !c.NoneCoversEdits && in.ReadFile != nil {
		unfit := unfitRunner(in)
		for _, file := range in.EditedFiles {
			unfit = cmp.Or(unfit, unfitRunnerAbove(in, file))
		}
		if unfit != "" {
			c.UnfitReason = fmt.Sprintf("the test script ends with %s, which does not accept the --watch=false that a check adds; ask the model to run the tests", unfit)
		}
	}
	return c
}

// isOutside reports whether a file is outside the project, in an added folder.
func isOutside(file string) bool {
	file = path.Clean(file)
	return path.IsAbs(file) || file == ".." || strings.HasPrefix(file, "../")
}

// acceptFirst accepts the first allowed candidate.
func (c *Choice) acceptFirst(candidates []string) bool {
	for _, command := range candidates {
		command = strings.TrimSpace(command)
		switch {
		case command == "":
		case IsAllowed(command):
			c.Command = command
			return true
		case !slices.Contains(c.Refused, command):
			c.Refused = append(c.Refused, command)
		}
	}
	return false
}

// projectKind is a kind of project: the languages it is written in and
// its test command, "" if the workspace is not such a project.
type projectKind struct {
	extensions []string
	command    func(ChoiceInput) string
}

var projectKinds = []projectKind{
	{[]string{".go"}, ifFilesExist("go test ./...", "go.mod")},
	{[]string{".rs"}, ifFilesExist("cargo test", "Cargo.toml")},
	{[]string{".java", ".kt", ".scala"}, ifFilesExist("mvn -q test", "pom.xml")},
	{[]string{".java", ".kt", ".kts", ".groovy", ".scala"}, gradleTest},
	{[]string{".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte"}, nodeTest},
	{[]string{".py"}, pythonTest},
}

// maxModules limits the number of modules in one check.
const maxModules = 4

// moduleTests returns the tests of the modules that the edited files belong to, each run in its
// folder; the root may be one, and one per language. It returns "" if only the root has one.
// blind means that a module below the root has a test that looks at none of the edited files.
func moduleTests(in ChoiceInput) (test string, blind bool) {
	if in.FileExists == nil {
		return "", false
	}
	var tests []string
	below := false
	for _, file := range in.EditedFiles {
		dir, command, cannotSee := findModule(in, path.Clean(file))
		test, blind = commandInDir(dir, command), blind || cannotSee
		if command != "" && !slices.Contains(tests, test) && len(tests) < maxModules {
			tests, below = append(tests, test), below || dir != "."
		}
	}
	if len(tests) < 2 && !below {
		return "", blind
	}
	if there := slices.DeleteFunc(slices.Clone(tests), in.isProgramMissing); len(there) > 0 { // run the others anyway
		tests = there
	}
	if len(tests) == 1 {
		return tests[0], false
	}
	return "(" + strings.Join(tests, ") && (") + ")", false
}

// isProgramMissing reports whether a program is missing for a check.
func (in ChoiceInput) isProgramMissing(check string) bool {
	return MissingProgram(check, in.IsInstalled) != ""
}

// MissingProgram returns the first program that is not installed of
// those that run in a check; "" if all are, or installed is nil.
func MissingProgram(check string, installed func(program string) bool) string {
	for _, c := range decidingCommands(risk.Inspect(check)) {
		if installed != nil && !strings.Contains(c.Name, "/") && !installed(c.Name) {
			return c.Name
		}
	}
	return ""
}

// findModule finds the nearest folder above a file that is a project in its language,
// or any project if the file is data that its tests may read, and its test.
func findModule(in ChoiceInput, file string) (dir, command string, blind bool) {
	if path.IsAbs(file) || strings.HasPrefix(file, "../") || !IsCode(file) {
		return "", "", false
	}
	for dir = path.Dir(file); ; dir = path.Dir(dir) {
		there := in
		there.FileExists = func(name string) bool { return in.FileExists(path.Join(dir, name)) }
		if dir != "." {
			there.ListDir, there.EditedFiles = nil, nil // only the root finds tests without a configuration
		}
		if in.ReadFile != nil {
			there.ReadFile = func(name string) ([]byte, error) { return in.ReadFile(path.Join(dir, name)) }
		}
		data := ""
		for _, p := range projectKinds {
			switch command = p.command(there); {
			case !IsAllowed(command):
			case slices.Contains(p.extensions, path.Ext(file)):
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

// commandInDir returns a command that runs in a folder.
func commandInDir(dir, command string) string {
	if dir == "." {
		return command
	}
	if strings.Trim(dir, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") != "" ||
		strings.HasPrefix(dir, "-") {
		dir = "./'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	return "cd " + dir + " && " + command
}

// projectTests suggests the project's test; if there are several kinds, first the one for
// the edited files. blind means that no test may look at some of the edited files.
func projectTests(in ChoiceInput) (suited []string, blind bool) {
	if in.FileExists == nil {
		return nil, false
	}
	var others []string
	for _, p := range projectKinds {
		command := p.command(in)
		switch {
		case command == "":
		case slices.ContainsFunc(in.EditedFiles, func(f string) bool { return slices.Contains(p.extensions, path.Ext(f)) }):
			suited = append(suited, command)
		case len(in.EditedFiles) == 0 || slices.ContainsFunc(in.EditedFiles,
			func(f string) bool { return IsCode(f) && !isForeign(f) }):
			others = append(others, command) // data that tests may read
		default:
			blind = true
		}
	}
	return append(suited, others...), blind
}

// isForeign reports whether only programs in the file's own language, or none,
// read a file: tests in another language do not, unless the file is test data.
func isForeign(file string) bool {
	file = strings.ToLower(file)
	if strings.Contains(file, "testdata") || strings.Contains(file, "fixture") || strings.Contains(file, "golden") {
		return false
	}
	name := path.Base(file)
	return slices.Contains(foreignExtensions, path.Ext(name)) || slices.Contains(foreignNames, name) ||
		strings.HasPrefix(file, ".github/") ||
		strings.HasPrefix(name, "dockerfile") || strings.HasPrefix(name, "docker-compose")
}

var (
	foreignExtensions = []string{
		".go", ".rs", ".java", ".kt", ".kts", ".groovy", ".scala", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue",
		".svelte", ".py", ".pyi", ".rb", ".php", ".pl", ".lua",
		".swift", ".cs", ".fs", ".vb", ".dart", ".ex", ".exs", ".erl", ".hs", ".clj", ".r", ".jl", ".nim", ".zig", ".sh",
		".bash", ".zsh", ".fish", ".ps1", ".bat", ".cmd",
		".css", ".scss", ".sass", ".less", ".ipynb", ".vim", ".el", ".tf", ".nix", ".png", ".jpg", ".jpeg", ".gif", ".ico",
		".svg", ".pdf", ".log",
	}
	foreignNames = []string{
		"makefile", "gnumakefile", "justfile", "containerfile", "procfile", "vagrantfile", "codeowners", ".gitignore",
		".gitattributes", ".dockerignore", ".editorconfig",
		".mailmap", ".gitlab-ci.yml", ".travis.yml", ".pre-commit-config.yaml", ".prettierrc", ".prettierignore",
		".eslintignore", ".npmignore", ".env.example",
	}
)

func ifFilesExist(command string, files ...string) func(ChoiceInput) string {
	return func(in ChoiceInput) string {
		if slices.ContainsFunc(files, in.FileExists) {
			return command
		}
		return ""
	}
}

func gradleTest(in ChoiceInput) string {
	switch {
	case !in.FileExists("build.gradle") && !in.FileExists("build.gradle.kts"):
		return ""
	case in.FileExists("gradlew"):
		return "./gradlew test"
	}
	return "gradle test"
}

func nodeTest(in ChoiceInput) string {
	manager, ok := findTestScript(in)
	switch {
	case !ok:
		return ""
	case in.FileExists("pnpm-lock.yaml"):
		return "pnpm test -- --watch=false"
	case in.FileExists("yarn.lock"):
		return "yarn test --watch=false"
	case in.FileExists("package-lock.json"):
		return "npm test -- --watch=false"
	case strings.HasPrefix(manager, "pnpm@"):
		return "pnpm test -- --watch=false"
	case strings.HasPrefix(manager, "yarn@"):
		return "yarn test --watch=false"
	}
	return "npm test -- --watch=false"
}

// findTestScript reports whether package.json has a test script, and returns
// the package manager it wants. npm's default script does not count.
func findTestScript(in ChoiceInput) (manager string, ok bool) {
	if in.ReadFile == nil {
		return "", false
	}
	script, manager := readTestScript(in)
	return manager, script != "" && !strings.Contains(script, "no test specified") && unfitRunner(in) == ""
}

// readTestScript returns the test script and the package manager in package.json.
func readTestScript(in ChoiceInput) (script, manager string) {
	data, err := in.ReadFile("package.json")
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

// unfitRunnerAbove returns the unfit runner in the test script of the
// nearest folder above a file that has a script; "" if there is none.
func unfitRunnerAbove(in ChoiceInput, file string) string {
	if path.IsAbs(file) || strings.HasPrefix(path.Clean(file), "../") || !IsCode(file) {
		return ""
	}
	for dir := path.Dir(path.Clean(file)); dir != "."; dir = path.Dir(dir) {
		there := in
		there.ReadFile = func(name string) ([]byte, error) { return in.ReadFile(path.Join(dir, name)) }
		if script, _ := readTestScript(there); script != "" {
			return unfitRunner(there)
		}
	}
	return ""
}

// unfitRunner returns the runner at the end of a test script if it does not accept --watch=false: node's own
// runner starts watching whatever the value, and others fail. It returns "" if the script has no such runner.
func unfitRunner(in ChoiceInput) string {
	script, _ := readTestScript(in)
	var words []string // of the last command
	for _, c := range risk.Inspect(script).Simple {
		if c.StartedBy == risk.StartedByLine {
			words = append([]string{c.Name}, c.Args...)
		}
	}
	for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains(delegatingRunners, words[0])) {
		words = words[1:]
	}
	if len(words) == 0 {
		return ""
	}
	name := path.Base(words[0])
	for _, flag := range words[1:] {
		if slices.Contains(unfitOptions[strings.TrimRight(name, "0123456789.")], flag) {
			return name + " " + flag
		}
	}
	if slices.Contains(strictRunners, name) {
		return name
	}
	return ""
}

var (
	delegatingRunners = []string{"npx", "env", "cross-env", "exec", "time", "command"}
	strictRunners     = strings.Fields("make gmake just go cargo pytest tox nox rake rspec bundle prove phpunit composer dotnet mvn gradle gradlew tsc eslint prettier deno " +
		"grep egrep fgrep rg diff cmp test [ ls cat find docker cmake ctest ninja bazel swift zig")
	unfitOptions = map[string][]string{
		"node": {"--test", "-e", "--eval", "-p", "--print", "-pe"}, "tsx": {"--test"}, "python": {"-m"}, "perl": {"-e"},
		"ruby": {"-e"},
	}
)

func pythonTest(in ChoiceInput) string {
	markers := []string{"pytest.ini", "pyproject.toml", "setup.cfg"}
	if in.ListDir != nil { // in a subfolder these files mark tests, not a project
		markers = append(markers, "conftest.py", "tests/conftest.py", "tests/__init__.py")
	}
	configured := slices.ContainsFunc(markers, in.FileExists)
	if configured || len(in.EditedFiles) == 0 && hasPythonTestNear(in, "") ||
		slices.ContainsFunc(in.EditedFiles, func(f string) bool { return hasPythonTestNear(in, f) }) {
		return "pytest -q"
	}
	return ""
}

// hasPythonTestNear reports whether a file is a Python test, or has
// tests beside it, at the root, or in a test folder.
func hasPythonTestNear(in ChoiceInput, file string) bool {
	switch {
	case isPythonTest(file):
		return true
	case in.ListDir == nil:
		return false
	}
	return slices.ContainsFunc([]string{path.Dir(file), "."},
		func(dir string) bool { return hasPythonTests(in, dir, 0) }) ||
		slices.ContainsFunc([]string{"tests", "test"}, func(dir string) bool { return hasPythonTests(in, dir, 1) })
}

// hasPythonTests reports whether a folder contains tests, down to depth levels of subfolders.
func hasPythonTests(in ChoiceInput, dir string, depth int) bool {
	return slices.ContainsFunc(in.ListDir(dir), func(name string) bool {
		folder, ok := strings.CutSuffix(name, "/")
		return isPythonTest(name) || ok && depth > 0 && hasPythonTests(in, path.Join(dir, folder), depth-1)
	})
}

func isPythonTest(file string) bool {
	name, ok := strings.CutSuffix(path.Base(file), ".py")
	return ok && (strings.HasPrefix(name, "test_") || strings.HasSuffix(name, "_test"))
}
