package verify

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/policy/mode"
)

func TestNeeded(t *testing.T) {
	good := Conditions{Policy: mode.VerifyAutomatic, EditedFiles: []string{"a.go"}, Enabled: true, BashAllowed: true, MaxAttempts: 2}
	for name, tt := range map[string]struct {
		change func(*Conditions)
		want   Reason
	}{
		"all conditions hold": {func(*Conditions) {}, ReasonEdits},
		"nothing edited":      {func(f *Conditions) { f.EditedFiles = nil }, ReasonNothingEdited},
		"a document":          {func(f *Conditions) { f.EditedFiles = []string{"README.md"} }, ReasonOnlyDocuments},
		"documents": {func(f *Conditions) {
			f.EditedFiles = []string{"./docs/conf.py", "LICENSE", "a/B.MD", `docs\x.png`, "NOTES.org", "notes", ".gitignore"}
		}, ReasonOnlyDocuments},
		"a document and code":        {func(f *Conditions) { f.EditedFiles = []string{"README.md", "a.go"} }, ReasonEdits},
		"code in another docs":       {func(f *Conditions) { f.EditedFiles = []string{"pkg/docs/a.go"} }, ReasonEdits},
		"docs elsewhere on the disk": {func(f *Conditions) { f.EditedFiles = []string{"/home/docs/a.go"} }, ReasonEdits},
		"a text file":                {func(f *Conditions) { f.EditedFiles = []string{"requirements.txt"} }, ReasonEdits},
		"another":                    {func(f *Conditions) { f.EditedFiles = []string{"x/CMakeLists.txt"} }, ReasonEdits},
		"one of a test":              {func(f *Conditions) { f.EditedFiles = []string{"a/testdata/in.txt"} }, ReasonEdits},
		"notes":                      {func(f *Conditions) { f.EditedFiles = []string{"notes.txt", "a/todo.txt"} }, ReasonOnlyDocuments},
		"switched off":               {func(f *Conditions) { f.Enabled = false }, ReasonSwitchedOff},
		"no bash":                    {func(f *Conditions) { f.BashAllowed = false }, ReasonNoBash},
		"plan":                       {func(f *Conditions) { f.Policy, f.Requested = mode.VerifyNever, true }, ReasonModeNever},
		"no mode at all":             {func(f *Conditions) { f.Policy = 0 }, ReasonModeNever},
		"default":                    {func(f *Conditions) { f.Policy = mode.VerifyOnRequest }, ReasonNotRequested},
		"default, asked":             {func(f *Conditions) { f.Policy, f.Requested = mode.VerifyOnRequest, true }, ReasonEdits},
		"third check":                {func(f *Conditions) { f.Attempts = 2 }, ReasonEdits},
		"fourth check":               {func(f *Conditions) { f.Attempts = 3 }, ReasonExhausted},
		"no repairs, first check":    {func(f *Conditions) { f.MaxAttempts = 0 }, ReasonEdits},
		"no repairs, second check":   {func(f *Conditions) { f.MaxAttempts, f.Attempts = 0, 1 }, ReasonExhausted},
	} {
		f := good
		tt.change(&f)
		if got := CheckReason(f); got != tt.want {
			t.Errorf("%s: %+v, want %q", name, got, tt.want)
		}
	}
	if CheckReason(Conditions{}) == ReasonEdits {
		t.Error("no facts are enough")
	}
}

// With the default of two repairs a check that always fails runs three times.
func TestRepairsAreBounded(t *testing.T) {
	for maxAttempts, want := range map[int]int{0: 1, 1: 2, 2: 3, 5: 6} {
		f := Conditions{Policy: mode.VerifyAutomatic, EditedFiles: []string{"a.go"}, Enabled: true, BashAllowed: true, MaxAttempts: maxAttempts}
		runs := 0
		for CheckReason(f) == ReasonEdits {
			if runs++; !CanRepair(f.Attempts, maxAttempts) {
				break
			}
			f.Attempts++
		}
		if runs != want {
			t.Errorf("at most %d repairs: %d checks, want %d", maxAttempts, runs, want)
		}
	}
}

// folder is a workspace of named files.
type folder map[string]string

func (f folder) exists(path string) bool { _, ok := f[path]; return ok }

func (f folder) list(dir string) (names []string) {
	for name := range f {
		if rest, ok := strings.CutPrefix(path.Join("/", name), strings.TrimSuffix(path.Join("/", dir), "/")+"/"); ok {
			first, _, below := strings.Cut(rest, "/")
			if below {
				first += "/"
			}
			names = append(names, first)
		}
	}
	return names
}

func (f folder) read(path string) ([]byte, error) {
	if text, ok := f[path]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no such file")
}

func TestChoose(t *testing.T) {
	tested := `{"scripts":{"test":"vitest"}}`
	for name, tt := range map[string]struct {
		user    string
		config  []string
		files   folder
		edited  []string
		want    string
		refused []string
		blind   bool
		unfit   bool
	}{
		"nothing known":                    {},
		"go":                               {files: folder{"go.mod": ""}, want: "go test ./..."},
		"go, edited elsewhere":             {files: folder{"go.mod": ""}, edited: []string{"/other/a.go", "../b.go"}},
		"go, edited here and elsewhere":    {files: folder{"go.mod": ""}, edited: []string{"/other/a.go", "b.go"}, want: "go test ./..."},
		"rust":                             {files: folder{"Cargo.toml": ""}, want: "cargo test"},
		"maven":                            {files: folder{"pom.xml": ""}, want: "mvn -q test"},
		"gradle":                           {files: folder{"build.gradle": ""}, want: "gradle test"},
		"gradle wrapper":                   {files: folder{"build.gradle.kts": "", "gradlew": ""}, want: "./gradlew test"},
		"wrapper alone":                    {files: folder{"gradlew": ""}},
		"npm":                              {files: folder{"package.json": tested}, want: "npm test -- --watch=false"},
		"npm lock":                         {files: folder{"package.json": tested, "package-lock.json": ""}, want: "npm test -- --watch=false"},
		"pnpm":                             {files: folder{"package.json": tested, "pnpm-lock.yaml": ""}, want: "pnpm test -- --watch=false"},
		"yarn":                             {files: folder{"package.json": tested, "yarn.lock": ""}, want: "yarn test --watch=false"},
		"pnpm by its name":                 {files: folder{"package.json": `{"scripts":{"test":"x"},"packageManager":"pnpm@9.1.0"}`}, want: "pnpm test -- --watch=false"},
		"no test script":                   {files: folder{"package.json": `{"scripts":{"build":"x"}}`}},
		"npm's own script":                 {files: folder{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}},
		"node's own runner":                {files: folder{"package.json": `{"scripts":{"test":"tsc && NODE_ENV=test node --test src"}}`}, unfit: true},
		"node's own runner below the root": {files: folder{"svc/web/package.json": `{"scripts":{"test":"node --test"}}`}, edited: []string{"svc/web/lib/a.js"}, unfit: true},
		"make":                             {files: folder{"package.json": `{"scripts":{"test":"CI=1 make test"}}`}, unfit: true},
		"a module of Python":               {files: folder{"package.json": `{"scripts":{"test":"python3 -m unittest"}}`}, unfit: true},
		"a line of node":                   {files: folder{"package.json": `{"scripts":{"test":"node -e 0"}}`}, unfit: true},
		"a check by hand":                  {files: folder{"package.json": `{"scripts":{"test":"npm run build && ! grep -q oops out.js"}}`}, unfit: true},
		"a file of node":                   {files: folder{"package.json": `{"scripts":{"test":"node make.js"}}`}, want: "npm test -- --watch=false"},
		"before another":                   {files: folder{"package.json": `{"scripts":{"test":"node --test && vitest"}}`}, want: "npm test -- --watch=false"},
		"broken package.json":              {files: folder{"package.json": `{"scripts":{"test":`}},
		"odd package.json":                 {files: folder{"package.json": `{"scripts":{"test":5}}`}},
		"pytest":                           {files: folder{"pytest.ini": ""}, want: "pytest -q"},
		"pyproject":                        {files: folder{"pyproject.toml": ""}, want: "pytest -q"},
		"setup.cfg":                        {files: folder{"setup.cfg": ""}, want: "pytest -q"},
		"tests of something":               {files: folder{"tests/x": ""}},
		"not of Python":                    {files: folder{"tests/x.js": "", "tests/unit/y.js": ""}, edited: []string{"tools/a.py"}},
		"tests of Python":                  {files: folder{"tests/unit/test_x.py": ""}, edited: []string{"src/a.py"}, want: "pytest -q"},
		"two kinds":                        {files: folder{"go.mod": "", "pyproject.toml": ""}, want: "go test ./..."},
		"a test beside it":                 {files: folder{"src/test_a.py": ""}, edited: []string{"src/a.py"}, want: "pytest -q"},
		"a test of Python":                 {edited: []string{"a_test.py"}, want: "pytest -q"},
		"a test at the root":               {files: folder{"test_b.py": ""}, edited: []string{"x/a.py"}, want: "pytest -q"},
		"Python without one":               {files: folder{"b.py": "", "contest_of.py": "", "x/test_c.py": ""}, edited: []string{"a.py"}},
		"two kinds, edited":                {files: folder{"go.mod": "", "pyproject.toml": ""}, edited: []string{"x/a.py"}, want: "pytest -q"},

		"data":                      {files: folder{"go.mod": ""}, edited: []string{"a/page.html", "b.json"}, want: "go test ./..."},
		"data of Python":            {files: folder{"test_b.py": ""}, edited: []string{"conf.yaml"}, want: "pytest -q"},
		"none of Python":            {files: folder{"tests/test_b.py": ""}, edited: []string{"Makefile", "run.sh"}, blind: true},
		"tests alone":               {files: folder{"test_b.py": ""}, want: "pytest -q"},
		"what tests read":           {files: folder{"go.mod": ""}, edited: []string{"a/testdata/x.py"}, want: "go test ./..."},
		"tests in another language": {files: folder{"go.mod": ""}, edited: []string{"web/b.test.js", "ui/tests/helper.js", "ui/test_x.rb"}, blind: true},
		"another language":          {files: folder{"go.mod": ""}, edited: []string{"tools/a.py", "web/site.css", "run.sh"}, blind: true},
		"of no language":            {files: folder{"Cargo.toml": ""}, edited: []string{"Makefile", "Dockerfile", ".gitignore", ".github/workflows/ci.yml"}, blind: true},
		"another below":             {files: folder{"svc/go.mod": ""}, edited: []string{"svc/site.css"}, blind: true},
		"of two":                    {files: folder{"go.mod": ""}, edited: []string{"tools/a.py", "a.go"}, want: "go test ./..."},
		"named, though":             {files: folder{"go.mod": ""}, user: "run go test ./...", edited: []string{"tools/a.py"}, want: "go test ./..."},

		"configured":          {config: []string{"make x", " cargo test "}, files: folder{"go.mod": ""}, want: "cargo test", refused: []string{"make x"}},
		"configured in vain":  {config: []string{"make test", "", "make test"}, refused: []string{"make test"}},
		"next candidate":      {config: []string{"make test"}, files: folder{"go.mod": ""}, want: "go test ./...", refused: []string{"make test"}},
		"almost":              {config: []string{"go test -v ./...", "cargo test;rm -rf /"}, refused: []string{"go test -v ./...", "cargo test;rm -rf /"}},
		"user over config":    {user: "fix it, then run cargo test", config: []string{"pytest -q"}, want: "cargo test"},
		"user in backticks":   {user: "run `go test ./...`.", want: "go test ./..."},
		"user, end of text":   {user: "run go test ./....", want: "go test ./..."},
		"user in Chinese":     {user: "改完运行go test ./...并修复", want: "go test ./..."},
		"user with options":   {user: "用 go test -v ./... 验证", files: folder{"go.mod": ""}, want: "go test ./...", refused: []string{"go test -v ./..."}},
		"user with a chain":   {user: "run cargo test && rm -rf x", refused: []string{"cargo test && rm -rf"}},
		"user, other command": {user: "then `make test`", files: folder{"Cargo.toml": ""}, want: "cargo test", refused: []string{"make test"}},
		"user, npm":           {user: "npm test -- --watch=false, please", want: "npm test -- --watch=false"},
		"user, bare npm":      {user: "run npm test", refused: []string{"npm test"}},
		"plain English":       {user: "go test it, and make tests pass; the pytest suite is red", files: folder{"go.mod": ""}, want: "go test ./..."},
		"quoted, no test":     {user: "rename `go` to `make x`"},
		"part of a word":      {user: "see cargo testing and mycargo test"},
	} {
		got := ChooseCheck(ChoiceInput{UserText: tt.user, Configured: tt.config, EditedFiles: tt.edited, FileExists: tt.files.exists, ReadFile: tt.files.read, ListDir: tt.files.list})
		if got.Command != tt.want || !slices.Equal(got.Refused, tt.refused) || got.NoneCoversEdits != tt.blind || (got.UnfitReason != "") != tt.unfit {
			t.Errorf("%s: %+v, want %q, refused %q", name, got, tt.want, tt.refused)
		}
	}
	if got := ChooseCheck(ChoiceInput{UserText: "hi"}); got.Command != "" {
		t.Errorf("without a workspace: %+v", got)
	}
}

func TestModulesBelowTheRoot(t *testing.T) {
	const tested, untested = `{"scripts":{"test":"vitest"}}`, `{}`
	for name, tt := range map[string]struct {
		files  folder
		edited []string
		want   string
	}{
		"a module":                       {folder{"svc/go.mod": ""}, []string{"svc/pkg/a.go"}, "cd svc && go test ./..."},
		"data of a module":               {folder{"svc/go.mod": ""}, []string{"svc/go.sum", "svc/testdata/in.txt"}, "cd svc && go test ./..."},
		"a module of a module":           {folder{"go.mod": "", "tools/go.mod": ""}, []string{"tools/a.go"}, "cd tools && go test ./..."},
		"the root beside a module":       {folder{"go.mod": "", "tools/go.mod": ""}, []string{"a.go"}, "go test ./..."},
		"both":                           {folder{"go.mod": "", "tools/go.mod": ""}, []string{"tools/a.go", "pkg/b.go", "tools/c.go"}, "(cd tools && go test ./...) && (go test ./...)"},
		"a package":                      {folder{"web/package.json": tested, "web/pnpm-lock.yaml": ""}, []string{"web/src/a.ts"}, "cd web && pnpm test -- --watch=false"},
		"a package that tests nothing":   {folder{"package.json": tested, "web/package.json": untested}, []string{"web/src/a.ts"}, "npm test -- --watch=false"},
		"two languages at the root":      {folder{"go.mod": "", "pyproject.toml": "", "tests/test_a.py": ""}, []string{"a.go", "tools/a.py"}, "(go test ./...) && (pytest -q)"},
		"two languages":                  {folder{"api/go.mod": "", "web/package.json": tested}, []string{"api/a.go", "web/a.ts"}, "(cd api && go test ./...) && (cd web && npm test -- --watch=false)"},
		"another language than its own":  {folder{"go.mod": "", "web/package.json": tested}, []string{"web/gen.go"}, "go test ./..."},
		"a name that a shell would read": {folder{"a b'; rm x/go.mod": ""}, []string{"a b'; rm x/a.go"}, `cd ./'a b'\''; rm x' && go test ./...`},
		"a name like an option":          {folder{"-P/go.mod": ""}, []string{"-P/a.go"}, `cd ./'-P' && go test ./...`},
		"a test in Python":               {folder{"pyproject.toml": "", "tests/test_a.py": ""}, []string{"tests/test_a.py"}, "pytest -q"},
		"a test without settings":        {folder{"tests/test_a.py": "", "tests/conftest.py": ""}, []string{"tests/test_a.py"}, "pytest -q"},
		"a project in Python":            {folder{"svc/pyproject.toml": "", "svc/tests/conftest.py": ""}, []string{"svc/tests/test_a.py"}, "cd svc && pytest -q"},
		"outside":                        {folder{"../x/go.mod": "", "/y/go.mod": ""}, []string{"../x/a.go", "/y/a.go"}, ""},
		"documents":                      {folder{"svc/go.mod": ""}, []string{"svc/README.md"}, ""},
	} {
		got := ChooseCheck(ChoiceInput{EditedFiles: tt.edited, FileExists: tt.files.exists, ReadFile: tt.files.read, ListDir: tt.files.list})
		if got.Command != tt.want || len(got.Refused) > 0 {
			t.Errorf("%s: %+v, want %q", name, got, tt.want)
		}
		if tt.want != "" && !IsCheck(got.Command) {
			t.Errorf("%s: %q is no check", name, got.Command)
		}
	}
}

func TestWhitelistIsLiteral(t *testing.T) {
	if len(allowedCommands) != 9 {
		t.Errorf("%d commands", len(allowedCommands))
	}
	for _, command := range allowedCommands {
		if got := ChooseCheck(ChoiceInput{Configured: []string{command}}); got.Command != command || !IsAllowed(command) {
			t.Errorf("%q configured gives %+v", command, got)
		}
		if got := ChooseCheck(ChoiceInput{UserText: "please run " + command + " now"}); got.Command != command {
			t.Errorf("%q named gives %+v", command, got)
		}
		if IsAllowed(command+" ") || IsAllowed(command+"; x") || IsAllowed(strings.ToUpper(command)) {
			t.Errorf("something like %q is allowed", command)
		}
	}
}

func TestAskedFor(t *testing.T) {
	for text, want := range map[string]bool{
		"fix the bug": false, "": false,
		"请执行验证": true, "修复后跑测试": true, "改一下，然后验证一下": true, "修复并验证": true,
		"不要执行验证": false, "不用跑测试": false, "别忘了跑测试": true, "无需运行测试，改完就好": false,
		"添加验证码功能": false, "请验证码": false, "不要改文档，跑测试": true,
		"fix it and run the tests": true, "Run all tests": true, "please verify": true, "Verify the fix": true,
		"don't run the tests": false, "fix it without running; do not verify that": false, "don't forget to run the tests": true,
		"make sure the tests pass": true, "use go test ./... when done": true, "don't use go test ./...": false,
		"add a verify function": false, "the test file is wrong": false, "verify_token is broken": false,
		"run  the\ntests": true,
	} {
		if got := IsRequested(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestACommandThatIsSpokenOfIsNotAskedFor(t *testing.T) {
	for text, want := range map[string][]string{
		"edit a.py because go test ./pkg/... hangs in CI":    nil,
		"the failing line came from pytest -q | tail":        nil,
		"`make test` fails, please mend it":                  nil,
		"if go test ./... fails, fix a.go":                   nil,
		"go test ./... 报错，修一下":                               nil,
		"do not run go test ./... yet":                       nil,
		"fix it until `go test ./...` passes":                {"go test ./..."},
		"when all is done run go test ./...":                 {"go test ./..."},
		"如果改完了就运行 pytest -q":                                 {"pytest -q"},
		"use pytest -q] for it":                              {"pytest -q"},
		"go test ./... is broken; run go test -v ./... then": {"go test -v ./..."},
	} {
		if got := requestedChecks(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestDeclined(t *testing.T) {
	for text, want := range map[string]bool{
		"edit a.py but do not run pytest yet": true, "don't run the tests": true, "fix it without running the tests": true, "skip go test for now": true,
		"改好，先不要跑测试": true, "不要运行 pytest": true, "无需执行验证": true,
		"fix it": false, "run the tests": false, "don't forget to run the tests": false, "别忘了跑测试": false, "don't change the tests": false,
		"mend CI: it does not run the tests on branches": false, "I don't like pytest": false, "make sure that the tests don't pass by chance": false,
	} {
		if got := IsDeclined(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for name, tt := range map[string]struct {
		code     int
		out, err string
		want     CheckOutcome
	}{
		"passed":                {0, "--- FAIL", "", OutcomePassed},
		"failed":                {1, "--- FAIL: TestX\nFAIL\tx\t0.1s", "", OutcomeFailed},
		"nothing said":          {1, "", "", OutcomeFailed},
		"does not compile":      {2, "FAIL\tx [build failed]", "x.go:1: undefined: y", OutcomeFailed},
		"not installed":         {127, "", "sh: go: not found", OutcomeEnvironment},
		"not executable":        {126, "", "", OutcomeEnvironment},
		"out of time":           {124, "--- FAIL: TestX", "", OutcomeEnvironment},
		"killed":                {137, "", "", OutcomeEnvironment},
		"lost":                  {-1, "", "", OutcomeEnvironment},
		"found by its words":    {1, "", `exec: "go": executable file not found in $PATH`, OutcomeEnvironment},
		"no pytest":             {1, "", "/usr/bin/python: No module named pytest", OutcomeEnvironment},
		"own module missing":    {2, "", "ModuleNotFoundError: No module named 'shop'", OutcomeFailed},
		"toolchain":             {1, "", "go: go.mod requires go >= 1.99 (running go 1.20; GOTOOLCHAIN=local)", OutcomeEnvironment},
		"offline":               {1, "", "go: x@v1: Get \"https://packages.example/x\": dial tcp: lookup packages.example: no such host", OutcomeEnvironment},
		"test without a server": {1, "--- FAIL: TestDial\n dial tcp 127.0.0.1:80: connection refused", "", OutcomeFailed},
		"refused, no registry":  {1, "connection refused", "", OutcomeFailed},
		"test prints it":        {1, "--- FAIL: TestShell\n command not found", "", OutcomeFailed},
		"no script":             {1, "", `npm error Missing script: "test"`, OutcomeEnvironment},
		"no tests":              {5, "no tests ran in 0.01s", "", OutcomeEnvironment},
		"full disk":             {1, "", "write: No space left on device", OutcomeEnvironment},
		"rust fails":            {101, "test result: FAILED. 1 passed; 1 failed", "", OutcomeFailed},
		"go.sum":                {1, "", "missing go.sum entry for module", OutcomeFailed},
	} {
		got := Interpret(tt.code, tt.out, tt.err)
		if got.Outcome != tt.want || (got.Reason == "") != (tt.want == OutcomePassed) {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}

func TestWords(t *testing.T) {
	v := Interpret(1, "x", "")
	prompt := RepairPrompt("go test ./...", v, strings.Repeat("前", 9000)+"END", "warn")
	if !strings.Contains(prompt, "请修复并再次验证") || !strings.Contains(prompt, "END") || !strings.Contains(prompt, "warn") || !strings.Contains(prompt, "go test ./...") {
		t.Errorf("prompt lacks something: %.200s", prompt)
	}
	if len(prompt) > maxPromptOutput+500 || !utf8.ValidString(prompt) {
		t.Errorf("prompt of %d bytes, valid %v", len(prompt), utf8.ValidString(prompt))
	}
	if s := EnvironmentNotice("go test ./...", Interpret(127, "", "")); s[0] != "best-effort" || !strings.Contains(s[1], "not installed") {
		t.Error(s)
	}
	if s := NotRunNotice("no command"); s[0] != "未执行自动验证" || s[1] != "automatic check not run: no command" {
		t.Error(s)
	}
	if s := RefusedNotice("make test"); !strings.Contains(s, "make test") || !strings.Contains(s, "cargo test") {
		t.Error(s)
	}
}

func FuzzChoose(f *testing.F) {
	for _, s := range []string{"run `go test ./...`", "go test ./... && x", "不要 cargo test", "pytest -q.", "``", "npm test -- --watch=false|x", "\xff go test \xfe"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := ChooseCheck(ChoiceInput{UserText: text, Configured: []string{text}})
		if got.Command != "" && !IsAllowed(got.Command) {
			t.Errorf("%q gave %q", text, got.Command)
		}
		if got.Command != "" && !strings.Contains(strings.Join(strings.Fields(text), " "), got.Command) {
			t.Errorf("%q is not in %q", got.Command, text)
		}
		IsRequested(text)
		Interpret(1, text, text)
	})
}

func TestACheckThatFailsIsNotRunAgain(t *testing.T) {
	for _, tt := range []struct {
		last LastCheck
		want bool
	}{
		{LastCheck{Command: "go test ./...", ExitCode: 1}, true},
		{LastCheck{Command: "go test -v -count=1 ./... 2>&1", ExitCode: 1}, true},
		{LastCheck{Command: "go vet ./... && go test ./...", ExitCode: 1}, false}, // unknown which of the two failed
		{LastCheck{Command: "go test ./pkg", ExitCode: 1}, false},
		{LastCheck{Command: "go test ./..."}, false},
		{LastCheck{Command: "go test ./...", ExitCode: 1, EditsSince: 1}, false},
		{LastCheck{Command: "go test ./...", ExitCode: 1, OtherChangesSince: 1}, false},
		{LastCheck{Command: "go test ./...", ExitCode: 1, InconclusiveReason: "no such program"}, false},
		{LastCheck{}, false},
	} {
		if got := tt.last.HasFailed("go test ./..."); got != tt.want {
			t.Errorf("%+v: %v", tt.last, got)
		}
	}
}

func TestACheckStandsForAnother(t *testing.T) {
	for _, tt := range []struct {
		ran, check string
		want       bool
	}{
		{"go test ./...", "go test ./...", true},
		{"go test -v -count=1 ./... 2>&1", "go test ./...", true},
		{"go vet ./... && go test ./...", "go test ./...", true},
		{"go test ./... && echo OK", "go test ./...", true},
		{"go test ./... && echo 'all is well'", "go test ./...", true},
		{"gofmt -l . ; go test ./...", "go test ./...", true},
		{"go vet ./...\ngo test ./...\n", "go test ./...", true},
		{"CGO_ENABLED=0 go test ./...", "go test ./...", true},
		{"cd web && npm run lint && npm test", "cd web && npm test -- --watch=false", true},
		{"GOFLAGS=-run=X go test ./...", "go test ./...", false},
		{"GOOS=js go test ./...", "go test ./...", false},
		{"x=1 go test ./...", "go test ./...", false},
		{"cd a; go test ./...", "go test ./...", false},
		{"go vet ./... && echo 'x && go test ./...'", "go test ./...", false},
		{"go test ./...; go vet ./...", "go test ./...", false},
		{"(cd a && go vet ./...) && go test ./...", "go test ./...", true},
		{"go test -run X ./...", "go test ./...", false},
		{"go test -short ./...", "go test ./...", false},
		{"go test ./pkg", "go test ./...", false},
		{"go vet ./...", "go test ./...", false},
		{"go test ./... | tail -3", "go test ./...", false},
		{"go test ./... || true", "go test ./...", false},
		{"python3 -m pytest -vv", "pytest -q", true},
		{"uv run pytest --tb=short", "pytest -q", true},
		{"pytest -k x", "pytest -q", false},
		{"pytest tests/test_a.py", "pytest -q", false},
		{"npm test", "npm test -- --watch=false", true},
		{"npm t", "npm test -- --watch=false", true},
		{"npm run test -- --coverage", "npm test -- --watch=false", true},
		{"npm run -s test", "npm test -- --watch=false", true},
		{"npm run test:unit", "npm test -- --watch=false", false},
		{"npm test -- a.test.js", "npm test -- --watch=false", false},
		{"yarn test", "npm test -- --watch=false", false},
		{"pnpm run test", "pnpm test -- --watch=false", true},
		{"cd web && npm test", "cd web && npm test -- --watch=false", true},
		{"cd other && npm test", "cd web && npm test -- --watch=false", false},
		{"cd /w && pytest -q", "pytest -q", true},
		{"cd '/w/' && timeout 60 python3 -m pytest", "pytest -q", true},
		{"cd src && cd .. && time pytest -q -x", "pytest -q", true},
		{"cd /w/web && npm test", "cd web && npm test -- --watch=false", true},
		{"cd /w && pytest -q", "cd web && pytest -q", false},
		{"cd /w2 && pytest -q", "pytest -q", false},
		{"cd .. && pytest -q", "pytest -q", false},
		{"cd $X && pytest -q", "pytest -q", false},
		{"go -C svc/api test ./...", "cd svc/api && go test ./...", true},
		{"go -C svc/api test ./...", "go test ./...", false},
		{"(cd svc/api; go test -v ./...)", "cd svc/api && go test ./...", true},
		{"cd svc/api\ngo test ./...", "cd svc/api && go test ./...", true},
		{"cd svc/api || exit; go test ./...", "cd svc/api && go test ./...", false},
		{"cd svc/api; go vet ./...; go test ./... | cat", "cd svc/api && go test ./...", false},
		{"npm --prefix web test", "cd web && npm test -- --watch=false", true},
		{"npm test --prefix=web", "cd web && npm test -- --watch=false", true},
		{"go test -C svc/api ./...", "cd svc/api && go test ./...", true},
		{"go test -C svc ./...", "cd svc/api && go test ./...", false},
		{"cd 子模块 && go test ./...", "cd ./'子模块' && go test ./...", true},
		{`cd "my mod" && go test ./...`, "cd ./'my mod' && go test ./...", true},
		{`cd my\ mod; go test ./...`, "cd ./'my mod' && go test ./...", true},
		{"go -C 'a+b' test ./...", "cd ./'a+b' && go test ./...", true},
		{"cd my mod && go test ./...", "cd ./'my mod' && go test ./...", false},
		{`cd "$X" && go test ./...`, "cd ./'$X' && go test ./...", false},
		{"cargo test --manifest-path svc/Cargo.toml", "cd svc && cargo test", true},
		{"mvn -f svc/pom.xml -q test", "cd svc && mvn -q test", true},
		{"cargo test -- --manifest-path svc/Cargo.toml", "cd svc && cargo test", false},
		{"go test ./... # and more", "go test ./...", true},
		{"go test ./... > log", "go test ./...", false},
		{"go test ./... &", "go test ./...", false},
		{"go test ./... && pytest -q", "(go test ./...) && (pytest -q)", true},
		{"go test ./...", "(go test ./...) && (pytest -q)", false},
		{"cargo test --quiet", "cargo test", true},
		{"cargo test --lib", "cargo test", false},
		{"mvn -B test", "mvn -q test", true},
		{"mvn verify", "mvn -q test", false},
		{"", "go test ./...", false},
		{"make test", "go test ./...", false},
	} {
		if got := (LastCheck{Command: tt.ran, root: "/w"}).Covers(tt.check); got != tt.want {
			t.Errorf("%q for %q: %v", tt.ran, tt.check, got)
		}
	}
}

func TestAProgramThatIsMissingKeepsNoOtherCheckFromRunning(t *testing.T) {
	files := folder{"go.mod": "", "pyproject.toml": "", "tests/test_a.py": ""}
	for there, want := range map[string]string{
		"go pytest": "(go test ./...) && (pytest -q)",
		"go":        "go test ./...",
		"pytest":    "pytest -q",
		"":          "(go test ./...) && (pytest -q)",
	} {
		installed := func(program string) bool { return slices.Contains(strings.Fields(there), program) }
		c := ChooseCheck(ChoiceInput{EditedFiles: []string{"a.go", "b.py"}, FileExists: files.exists, ReadFile: files.read, ListDir: files.list, IsInstalled: installed})
		if c.Command != want {
			t.Errorf("with %q: %s, want %s", there, c.Command, want)
		}
	}
	none := func(string) bool { return false }
	for check, want := range map[string]string{
		"go test ./...": "go", "cd ./'my mod' && pytest -q": "pytest", "(cd a && npm test) && (go test ./...)": "npm", "./gradlew test": "",
	} {
		if got := MissingProgram(check, none); got != want {
			t.Errorf("%s lacks %q, want %q", check, got, want)
		}
	}
}
