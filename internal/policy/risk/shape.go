package risk

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Ellipsis replaces the irrelevant words in a shape: workspace files, and options that run nothing else.
const Ellipsis = "…"

// Shapes returns what "always" would remember of a line: each command that does more than read, without
// the words that can neither run code nor reach elsewhere. Two commands of one shape differ only in
// such words. There are none if a command is not known well enough: then only the exact line can be
// remembered. The error says why even that cannot be.
func Shapes(r Report) ([]string, error) {
	switch {
	case r.Level > None || r.Unknown:
		return nil, errors.New("needs approval every time")
	case r.Substituted:
		return nil, errors.New("part of the command is only known when it runs")
	case r.Redirected:
		return nil, errors.New("the output goes to a file outside the project")
	case len(r.Simple) == 0:
		return nil, errors.New("runs no command")
	}
	if len(r.SetVars) > 0 {
		return nil, nil
	}
	var shapes []string
	for _, c := range r.Simple {
		if c.ReadOnly {
			continue
		}
		h, _ := findHabit(c)
		s, ok := r.buildShape(h, c, true)
		if !ok {
			return nil, nil
		}
		if !slices.Contains(shapes, s) {
			shapes = append(shapes, s)
		}
	}
	return shapes, nil
}

// IsCovered reports whether the line has commands that do more than
// read, and each has a remembered shape or is in the user's list.
func IsCovered(r Report, remembered func(shape string) bool, names []string) bool {
	if r.Level > None || r.Unknown || r.Substituted || r.Redirected || len(r.Simple) == 0 || len(r.SetVars) > 0 {
		return false
	}
	some := false
	for _, c := range r.Simple {
		let := slices.Contains(names, c.Name) && !neverRemembered(c)
		if c.ReadOnly && !let {
			continue
		}
		h, _ := findHabit(c)
		let = let || slices.ContainsFunc(r.widerShapes(h, c), func(s string) bool {
			wider := strings.Replace(s, strings.Join(h.words, " "), h.broader, 1)
			return remembered(s) || h.broader != "" && (remembered(wider) || remembered(wider+" "+Ellipsis))
		})
		if !let {
			return false
		}
		some = true
	}
	return some
}

// widerShapes returns the shape of a command and of commands that do at least the same: without its dry-run
// option, or with another option to change files.
func (r Report) widerShapes(h habit, c Command) (shapes []string) {
	add := func(rehearses bool, more ...string) {
		if s, ok := r.buildShape(h, c, rehearses, more...); ok {
			shapes = append(shapes, s)
		}
	}
	add(true)
	add(false)
	for word := range h.change {
		add(false, word)
	}
	return shapes
}

// buildShape returns a command of a habit without the irrelevant words, and with more. It omits a dry-run
// option unless rehearses. It fails for an unknown command.
func (r Report) buildShape(h habit, c Command, rehearses bool, more ...string) (string, bool) {
	if h.words == nil || !c.Exact || c.isLocal || c.AddsArgs || c.Dir == "" || !r.facts.isInside(c.Dir) {
		return "", false
	}
	all := append([]string{c.Name}, c.Args[:len(h.words)-1]...)
	for i, word := range all {
		all[i] = quoteWord(word)
	}
	for _, word := range append(r.keptWords(h, c, rehearses), more...) {
		all = append(all, quoteWord(word))
	}
	if h.operands != keepAll {
		all = append(all, Ellipsis)
	}
	s := strings.Join(all, " ")
	if c.Dir != r.facts.Cwd {
		s += " (in " + strings.TrimPrefix(c.Dir, r.facts.Cwd+"/") + ")"
	}
	return s, true
}

// keptWords returns the relevant words after the known ones: all of them from
// the first that is neither a harmless option nor a harmless operand.
func (r Report) keptWords(h habit, c Command, rehearses bool) (kept []string) {
	rest := c.Args[len(h.words)-1:]
	for len(rest) > 0 {
		word := rest[0]
		if h.dryRun[word] || h.change[word] {
			if rest = rest[1:]; rehearses || h.change[word] {
				kept = append(kept, word)
			}
			continue
		}
		if len(word) > 1 && word[0] == '-' {
			n := h.optionLength(rest)
			if n == 0 {
				return append(kept, rest...)
			}
			rest = rest[n:]
			continue
		}
		switch {
		case h.operands == keepNone, h.operands == keepNonPaths && r.isOrdinary(c, word):
		case h.operands == keepLocalOrigins && localOrigin(word) != "":
			kept = append(kept, localOrigin(word))
		case h.operands == keepAll:
			kept = append(kept, word)
		default:
			return append(kept, rest...)
		}
		rest = rest[1:]
	}
	return kept
}

// isOrdinary reports whether a word names a workspace file that steers no program.
func (r Report) isOrdinary(c Command, word string) bool {
	file, _, _ := strings.Cut(word, "::") // one test in a file
	if file == "" || file == "-" || file[0] == '@' /* a file of options */ || strings.HasPrefix(file, "~") || strings.Contains(file, "\\") {
		return false
	}
	p := file
	if !path.IsAbs(p) {
		p = path.Join(c.Dir, strings.TrimSuffix(p, "..."))
		if !strings.HasPrefix(file, ".") && packageTools.has(c.Name) {
			return false // a third-party package
		}
	}
	if p = path.Clean(p); p == r.facts.Cwd {
		p = path.Join(p, "x") // the workspace's content counts, whatever its name
	}
	return r.facts.isInside(p) && r.facts.isInside(r.facts.real(p)) && r.facts.protectedReason(p) == ""
}

// packageTools are the programs for which a word without a leading dot is a package, not a local folder.
var packageTools = wordList("go staticcheck")

// localOrigin returns an address on this machine without its path, or "" for any other word.
func localOrigin(word string) string {
	address := word
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.User != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(word, "{}[]*") &&
		!strings.Contains(word, "[::1]") {
		return ""
	}
	a, err := netip.ParseAddr(u.Hostname())
	if !strings.EqualFold(u.Hostname(), "localhost") && (err != nil || !a.IsLoopback()) {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// quoteWord quotes a word so that its end is visible.
func quoteWord(word string) string {
	q, err := syntax.Quote(word, syntax.LangBash)
	if err != nil {
		return "'" + word + "'"
	}
	return q
}

// operandRule says which words after a known command a shape keeps.
type operandRule uint8

const (
	keepAll          operandRule = iota // all: they decide what runs
	keepNonPaths                        // all but files and folders of the workspace
	keepNone                            // none
	keepLocalOrigins                    // addresses of this machine, without their path
)

// habitRows are everyday commands that run only the program itself, or project code that the first words
// name. A row has the words that identify the command, where "*" is any one word, and the options that
// neither run other code nor lead elsewhere; "=" ends those that take a value. After "|" are dry-run
// options, after a second "|" options that change files: both stay in a shape. A command outside the
// table is only remembered exactly as written.
var habitRows = []struct {
	operands operandRule
	options  string
	rows     string
}{
	{keepNonPaths, goTestOptions, "go test"},
	{keepNonPaths, "-v -race -tags= -x -a -p= -trimpath -json | -n", "go vet < go test"},
	{keepNonPaths, "-v -race -tags= -x -a -p= -trimpath | -n", "go build < go test"},
	{keepNonPaths, "-x | -n", "go fmt"},
	{keepNonPaths, "-l -d -s -e || -w", "gofmt,goimports,gofumpt"},
	{keepAll, "-v -x", "go mod tidy,go mod verify,go mod download,go mod graph,go mod why,go list,go doc,go version,go work sync"},
	{keepNonPaths, "-v --verbose --fast --timeout= --new || --fix", "golangci-lint run"},
	{keepNonPaths, "-checks= -f= -tests= -show-ignored", "staticcheck"},

	{keepNonPaths, pytestOptions,
		"pytest,python -m pytest,python3 -m pytest,uv run pytest,poetry run pytest,pipenv run pytest,pdm run pytest,hatch run pytest"},
	{keepAll, "-v -q -f -b -c -k= --verbose --quiet --failfast", "python -m unittest,python3 -m unittest"},
	{keepNonPaths, "--strict --pretty --no-color-output --ignore-missing-imports --show-error-codes",
		"mypy,python -m mypy,python3 -m mypy,uv run mypy,poetry run mypy,pyright"},
	{keepNonPaths, "--select= --ignore= -q --quiet --statistics --line-length= -l= --show-fixes | --diff --check | --fix",
		"ruff check,ruff format,uv run ruff check,uv run ruff format,black,isort,flake8,python -m black,python -m ruff check,python -m flake8"},
	{keepAll, "", "python manage.py test,python manage.py check,python manage.py makemigrations,python manage.py migrate,python manage.py showmigrations,python3 manage.py test,python3 manage.py check,tox,nox"},

	{keepAll, "-s --silent -q --quiet", `npm run *,npm test,npm t,npm start,npm ci,npm install,npm i,npm ls,npm outdated,npm audit,npm view,npm run-script *,
		pnpm run *,pnpm test,pnpm build,pnpm lint,pnpm install,yarn run *,yarn test,yarn build,yarn lint,yarn install,yarn,bun run *,bun test,bun install`},
	{keepNonPaths, "--test-name-pattern= --test-only --test-concurrency=", "node --test"},
	{keepAll, "--pretty --watch -b --build --incremental | --noEmit", "tsc"},
	{keepNonPaths, "--ext= --max-warnings= --quiet --cache --no-color --color || --fix", "eslint"},
	{keepNonPaths, "| --check -c -l --list-different | --write -w", "prettier"},
	{keepNonPaths, "-t= --testNamePattern= --coverage --runInBand -i --verbose --silent --bail --ci --watch=false --watchAll=false --passWithNoTests --run || -u --updateSnapshot", "jest,vitest run,vitest"},

	{keepNone, cargoOptions, "cargo test"},
	{keepAll, cargoOptions,
		"cargo build < cargo test,cargo check < cargo test,cargo clippy,cargo fmt,cargo doc,cargo bench,cargo tree,cargo metadata,cargo nextest run"},
	{keepAll, "-j -k --keep-going -s --silent -B --always-make -w --no-print-directory | -n --dry-run", "make,gmake"},
	{keepAll, "", "just,ninja,./gradlew,./mvnw,mvn test,mvn compile,mvn package,mvn verify,gradle test,gradle build,gradle check,dotnet test,dotnet build,swift test,swift build,mix test,mix compile,zig build,zig test,sbt test,lein test"},
	{keepNonPaths, "-f= --format= --fail-fast -e= --example= -b", "rspec,bundle exec rspec"},
	{keepNonPaths, "--parallel || -a -A --autocorrect", "rubocop,bundle exec rubocop"},

	{keepNonPaths, "-A --all -u --update -p --patch -N --intent-to-add -v --verbose -- | -n --dry-run", "git add"},
	{keepNonPaths, "-m= --message= -a --all -q --quiet -v --verbose -s --signoff --allow-empty --no-gpg-sign --",
		"git commit"},
	{keepNonPaths, "-v -- | -n", "git mv"},
	{keepNonPaths, "--", "git restore --staged,git restore -S"},
	{keepNone, "-q --quiet", "git checkout -b,git switch -c,git switch --create"},
	{keepAll, "-q --quiet -v --verbose",
		"git checkout,git switch,git branch,git push,git rebase,git rm,git init,git remote,git stash,git stash pop,git stash apply,git worktree add"},
	{keepAll, "-q --quiet -v --verbose --all --prune -p --tags", "git fetch"},
	{keepAll, "-q --quiet -v --verbose --ff-only --no-edit --rebase --autostash --stat", "git pull"},
	{keepAll, "-q --quiet -m= --message= --no-edit --ff-only --no-ff -u --include-untracked",
		"git merge,git revert,git cherry-pick,git stash push"},

	{keepNone, "-a --all -q --quiet --no-trunc --tail= -n= -t --timestamps --format= --filter= --since= --services --no-stream", `docker ps,docker images,docker logs,docker version,docker info,docker stats,docker top,docker port,
		docker compose ps,docker compose logs,docker compose top,docker compose images,docker compose ls,docker-compose ps,docker-compose logs`},
	{keepAll, "-d --detach -q --quiet --build --wait --no-deps --pull= --no-cache --progress=",
		"docker build,docker compose up,docker compose down,docker compose build,docker compose start,docker compose stop,docker compose restart,docker compose pull,docker-compose up,docker-compose down,docker-compose build"},
	{keepAll, "", "kubectl get,kubectl describe,kubectl logs,kubectl top,kubectl version,kubectl diff,helm list,helm lint,helm template,terraform plan,terraform validate,terraform fmt,gh pr view,gh pr list,gh pr status,gh pr checks,gh pr diff,gh issue view,gh issue list,gh run list,gh run view"},

	{keepNonPaths, "-p -v --parents --verbose", "mkdir"},
	{keepNonPaths, "", "touch"},
	{keepNonPaths, "-p -v --verbose | -n --no-clobber", "cp"},
	{keepLocalOrigins, "-s -S -f -i -I -v --silent --show-error --fail --head --include --verbose -m= --max-time= --retry= --retry-delay= --retry-connrefused --connect-timeout=", "curl"},
}

const (
	goTestOptions = "-v -race -short -count= -run= -skip= -bench= -benchmem -benchtime= -timeout= -cover -covermode= -coverpkg= -failfast -json -parallel= -p= -cpu= -shuffle= -list= -tags= -x -a -trimpath -fullpath -vet= | -n"
	pytestOptions = "-k= -v -vv -vvv -q -qq -x -s -l --lf --ff --nf --sw --tb= -m= --maxfail= -ra -rA -rs -rf -r= --durations= -n= --co --collect-only --no-header --no-summary --color= --cov --cov= --last-failed --failed-first --exitfirst --verbose --quiet --showlocals --capture= --stepwise"
	cargoOptions  = "-p= --package= --lib --bins --tests --all --workspace --release -r --all-features --all-targets --no-default-features --features= -F= --no-run -q --quiet -v --verbose --test= --bin= --example= --doc --no-fail-fast -j= --jobs= --locked --offline --message-format= --color="
)

// A habit is one row of the table.
type habit struct {
	words    []string // that identify it
	operands operandRule
	options  map[string]bool // those with a value end in "="
	dryRun   map[string]bool // dry-run options
	change   map[string]bool // options that make it change files
	broader  string          // the habit whose permission includes this one
}

// habitsByProgram are the rows by program, those with most words first.
var habitsByProgram = sync.OnceValue(func() map[string][]habit {
	all := make(map[string][]habit)
	for _, h := range habitRows {
		parts := append(strings.Split(h.options, "|"), "", "")
		options, rehearse, change := newSet(parts[0]), newSet(parts[1]), newSet(parts[2])
		for row := range strings.SplitSeq(h.rows, ",") {
			row, within, _ := strings.Cut(row, "<")
			one := habit{strings.Fields(row), h.operands, options, rehearse, change, strings.TrimSpace(within)}
			list := all[one.words[0]]
			at := len(list)
			for at > 0 && len(list[at-1].words) < len(one.words) {
				at--
			}
			all[one.words[0]] = append(list[:at:at], append([]habit{one}, list[at:]...)...)
		}
	}
	return all
})

// findHabit returns the row that a command matches.
func findHabit(c Command) (habit, bool) {
	for _, h := range habitsByProgram()[c.Name] {
		if len(c.Args) < len(h.words)-1 {
			continue
		}
		same := true
		for i, want := range h.words[1:] {
			got := c.Args[i]
			same = same && (got == want || want == "*" && got != "" && got[0] != '-')
		}
		if same {
			return h, true
		}
	}
	return habit{}, false
}

// optionLength returns how many words an option that does not affect what runs takes; 0 if it is not such an option.
func (h habit) optionLength(args []string) int {
	name, _, hasValue := strings.Cut(args[0], "=")
	if c := h.words[0]; (c == "go" || c == "staticcheck") && strings.HasPrefix(name, "--") {
		name = name[1:] // one dash or two are equal there
	}
	switch {
	case h.options[args[0]] && !strings.HasSuffix(args[0], "="), hasValue && h.options[name+"="]:
		return 1
	case h.options[name] && !hasValue:
		return 1
	case h.options[name+"="]:
		return min(2, len(args))
	case hasValue || strings.HasPrefix(args[0], "--") || len(args[0]) < 3:
		return 0
	}
	letters := args[0][1:]
	for i := range len(letters) {
		option := "-" + letters[i:i+1]
		switch {
		case h.options[option+"="] && i+1 < len(letters):
			return 1
		case h.options[option+"="]:
			return min(2, len(args))
		case !h.options[option]:
			return 0
		case i+1 < len(letters) && strings.Trim(letters[i+1:], "0123456789") == "":
			return 1 // with a number, as in -j4
		}
	}
	return 1
}
