package risk_test

import (
	"slices"
	"strings"
	"testing"

	"coder/internal/policy/risk"
)

// TestTheShapeOfALine is what "always" remembers of lines people run all day.
func TestTheShapeOfALine(t *testing.T) {
	for command, want := range map[string]string{
		"go test ./...": "go test …",
		"go test -run TestX -count=1 ./src | tail -3":        "go test …",
		"go test --race -v ./src/...":                        "go test …",
		"go test -exec ./x ./...":                            "go test -exec ./x ./... …",
		"go test ./... -toolexec=./x":                        "go test '-toolexec=./x' …",
		"go test /tmp/evil":                                  "go test /tmp/evil …",
		"go test ../evil":                                    "go test ../evil …",
		"go test github.com/evil/x":                          "go test github.com/evil/x …",
		"timeout 60 go test ./...":                           "go test …",
		"cd src && go test ./...":                            "go test … (in src)",
		"NO_COLOR=1 go test":                                 "go test …",
		"git add -A && git commit -m 'a b'":                  "git add …, git commit …",
		"git commit -am x":                                   "git commit …",
		"git add .husky/pre-commit":                          "git add .husky/pre-commit …",
		"git push origin main":                               "git push origin main",
		"git push --all":                                     "git push --all",
		"git branch -m other":                                "git branch -m other",
		"git checkout -b feature":                            "git checkout -b …",
		"npm run lint":                                       "npm run lint",
		"npm run lint -- --fix":                              "npm run lint -- --fix",
		"make -j4 build":                                     "make build",
		"make -j evil":                                       "make evil",
		"make -f /tmp/x":                                     "make -f /tmp/x",
		"make CC=./x":                                        "make 'CC=./x'",
		"python -m pytest -k name -x tests":                  "python -m pytest …",
		"pytest -p evil":                                     "pytest -p evil …",
		"pytest src/a_test.py::TestA::test_b -q":             "pytest …",
		"cargo test name -- --nocapture":                     "cargo test -- --nocapture …",
		"docker compose ps":                                  "docker compose ps …",
		"docker compose up -d":                               "docker compose up",
		"curl -s localhost:8080/health":                      "curl http://localhost:8080 …",
		"curl -sf 'http://127.0.0.1:3000/a?b=c'":             "curl http://127.0.0.1:3000 …",
		"curl https://x.org/a":                               "curl https://x.org/a …",
		"curl http://localhost@x.org/a":                      "curl http://localhost@x.org/a …",
		"mkdir -p src/new":                                   "mkdir …",
		"cp src/a.go src/b.go":                               "cp …",
		"cp -r evil/. .":                                     "cp -r evil/. . …",
		"cp -a evil src":                                     "cp -a evil src …",
		"pytest @options":                                    "pytest @options …",
		"mypy @/tmp/options":                                 "mypy @/tmp/options …",
		"go vet ./... && make && ls":                         "go vet …, make",
		"go test ./... > new.txt":                            "go test …",
		"grep -rn x . | sort | uniq -c && npm test":          "npm test",
		"if [ -f go.mod ]; then go build ./...; fi":          "go build …",
		"for d in src docs; do ls; go test ./src; done":      "go test …",
		"gofmt -l . && golangci-lint run --timeout=5m ./src": "gofmt …, golangci-lint run …",
	} {
		shapes, err := risk.Shapes(risk.Analyse(command, facts()))
		if err != nil || strings.Join(shapes, ", ") != want {
			t.Errorf("%q: %q %v, want %q", command, strings.Join(shapes, ", "), err, want)
		}
	}
}

// TestWhatRunsAnythingIsOnlyRememberedAsItStands holds for every command that
// runs code it is given, or that is not known.
func TestWhatRunsAnythingIsOnlyRememberedAsItStands(t *testing.T) {
	for _, command := range []string{
		"go run ./evil", "go generate ./...", "go install x@latest", "go tool x", "python x.py", "python -c 'x'", "python3.12 -m evil", "node x.js", "node -e 1", "npx eslint", "npm exec x",
		"env make", "env GOFLAGS=-x go test", "GOFLAGS=-toolexec=x go test", "PATH=. go test", "npm_config_script_shell=x npm run lint", "export GOFLAGS; go test",
		"ls | xargs go test", "find . -exec go test {} ;", "find . -name x | xargs -n1 make", "sh -c 'go test'", "bash x.sh", "./x.sh", "./go test", "/tmp/go test", "docker run alpine", "docker exec a ls",
		"git -c core.pager=x log", "git -C src commit -m x", "git --git-dir=x status", "uv run x.py", "poetry run python x.py", "sqlite3 a.db", "vim a", "sed -i s/a/b/ src/a.go",
		"set -a; go test", "alias go=x; go test", "cd /tmp && make", "cd $X && make", "f() { go build; }; f", "go test $X", "git add *.go", "source x && go test", "unknown-program", "nohup make", "watch make",
		"bundle exec x", "deno run x", "bun x", "tar xf a.tar", "hash -r; go test",
	} {
		if shapes, err := risk.Shapes(risk.Analyse(command, facts())); err != nil && command != "hash -r; go test" || len(shapes) > 0 {
			t.Errorf("%q has the shapes %q, %v", command, shapes, err)
		}
	}
	for _, command := range []string{
		"rm a", "sudo make", "echo $(date)", "ls '", "$X", "make SHELL=x", "git commit --amend", "go env -w GOFLAGS=x", "ssh host ls", "git push --force", "make > /tmp/x", "git push origin +main",
		"go test; rm x", "ls > AGENTS.md", "terraform destroy",
	} {
		if shapes, err := risk.Shapes(risk.Analyse(command, facts())); err == nil {
			t.Errorf("%q would be remembered: %q", command, shapes)
		}
	}
}

// TestAShapeCoversWhatRunsTheSameCode says yes to one line and tries others.
func TestAShapeCoversWhatRunsTheSameCode(t *testing.T) {
	for said, others := range map[string]string{
		"go test ./...": `
			yes go test
			yes go test -v -run 'A|B' ./src
			yes go test -n ./src
			no go test -run -n -exec ./x
			yes go build ./... && go vet ./src
			yes go test ./... 2>&1 | tail -20
			no go run ./evil
			no go test -exec ./x ./...
			no go test -toolexec ./x
			no go test -toolexec=./x
			no go test --exec=./x
			no go vet -vettool=./x ./...
			no go build -o /usr/bin/x
			no go env -w GOFLAGS=-toolexec=x
			no GOFLAGS=-toolexec=x go test
			no PATH=. go test
			no env GOFLAGS=x go test
			no go test ./... && rm x
			no go test ./... && make
			no go test $(x)
			no go generate ./...
			no go test -args -x
			no cd /tmp && go test
			no cd src && go test
			no go test; alias go=x`,
		"go vet ./...": "no go test ./...",
		"git add -A && git commit -m x": `
			yes git commit -am 'other words'
			yes git add src/a.go src/b.go
			no git commit --amend
			no git commit --amen
			no git -c core.hooksPath=x commit -m x
			no git add -f .env
			no git push
			no git commit -m x && git push --force`,
		"npm run lint": `
			yes npm run lint --silent
			no npm run lint; rm -rf x
			no npm run deploy
			no npm run lint -- --rulesdir x
			no npm --script-shell=./x run lint
			no npm run lint --script-shell=./x`,
		"python -m pytest -k a": `
			yes python -m pytest -k b -x src
			no python -c 'import os'
			no python -m pytest -p evil
			no python -m pytest -pevil
			no python -m pytest -c /tmp/x.ini
			no python -m pytest --rootdir=/tmp
			no python -m pytest /tmp/evil
			no python -m http.server
			no python x.py`,
		"make build":                    "yes make -j8 build\nno make\nno make install\nno make build CC=x\nno make -f /tmp/x build\nno make -C /tmp build\nno make --eval=x build\nno MAKEFLAGS=x make build\nyes make -n build",
		"make -n build":                 "yes make -n build -s\nno make build\nno make -n build SHELL=x",
		"gofmt -w .":                    "yes gofmt -l .\nyes gofmt a.go -w\nno gofmt -r x -w .",
		"gofmt -l .":                    "yes gofmt -d a.go\nno gofmt -w .\nno gofmt -l -w .",
		"black .":                       "yes black --check src",
		"black --check .":               "no black .\nno black --check . -c x",
		"eslint src":                    "yes eslint --quiet\nno eslint --fix\nno eslint src --fix",
		"eslint src --fix":              "yes eslint src\nyes eslint --fix src/a.js",
		"curl -s localhost:8080/health": "yes curl -sf http://localhost:8080/other\nno curl -s localhost:2375/containers\nno curl -s localhost.evil.org:8080\nno curl -d x localhost:8080\nno curl -s x.org\nno curl -x evil localhost:8080\nno curl -K x localhost:8080",
		"git push origin main":          "no git push evil main\nno git push origin +main\nno git push origin main --force\nno git push origin main other",
	} {
		shapes, err := risk.Shapes(risk.Analyse(said, facts()))
		if err != nil || len(shapes) == 0 {
			t.Fatalf("%q: %q, %v", said, shapes, err)
		}
		for row := range strings.Lines(others) {
			want, command, _ := strings.Cut(strings.TrimSpace(row), " ")
			if command == "" {
				continue
			}
			got := risk.IsCovered(risk.Analyse(command, facts()), func(s string) bool { return slices.Contains(shapes, s) }, nil)
			if got != (want == "yes") {
				t.Errorf("after %q: %q is covered: %v", said, command, got)
			}
		}
	}
}

func TestAPersonsListNamesPrograms(t *testing.T) {
	names := []string{"go", "./git"}
	for command, want := range map[string]bool{
		"go build": true, "go test | tail": true, "go test && make": false, "go test; rm x": false, "go test > /tmp/new": false, "go test $(date)": false,
		"./go build": false, "./git status": false, "sudo go build": false, "GOFLAGS=-exec=x go test": false, "": false,
	} {
		if got := risk.IsCovered(risk.Analyse(command, facts()), func(string) bool { return false }, names); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
}

// A workspace that is called like a folder which steers is one all the same; one within
// such a folder is not.
func TestTheShapeOfALineDoesNotDependOnTheNameOfTheWorkspace(t *testing.T) {
	for cwd, want := range map[string]string{"/home/me/other": "go test …", "/home/me/go": "go test …", "/home/me/.ssh": "go test ./... …"} {
		f := risk.Facts{Cwd: cwd, IsInside: func(p string) bool { return p == cwd || strings.HasPrefix(p, cwd+"/") }}
		if got, err := risk.Shapes(risk.Analyse("go test ./...", f)); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v; want %q", cwd, got, err, want)
		}
	}
}
