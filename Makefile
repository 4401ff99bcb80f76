# make alone lists what can be made; every target has one line of help.
.DEFAULT_GOAL := help
SHELL := /bin/bash

GO       ?= go
PKGS     ?= ./...
# With all packages come those of the fleet, a module of its own.
ALL      := $(filter ./...,$(PKGS))
T        ?= 20s
N        ?= 100000
SEED     ?= $(shell date +%s)
# Without a VERSION the program names the tag it was built from, or a development version.
VERSION  ?=
# Go notes the commit by itself, but not in a linked worktree, whose .git is a file.
CHECKOUT  = $(shell test -f .git && echo $$(git log -1 --format=%H,%cI),$$(test -z "$$(git status --porcelain)" && echo clean || echo dirty))
LDFLAGS   = -s -w $(if $(VERSION),-X coder/internal/app.releaseVersion=$(VERSION)) $(addprefix -X coder/internal/app.WorktreeInfo=,$(CHECKOUT))
PREFIX   ?= /usr/local
GITLEAKS := github.com/zricethezav/gitleaks/v8
TOOL     := $(GO) tool -modfile=tools/go.mod

# The race detector needs cgo, and cgo a C compiler. Go itself turns cgo off where it finds none.
CGO      := $(and $(filter 1,$(shell $(GO) env CGO_ENABLED)),$(shell command -v "$$($(GO) env CC)"))
RACE     := $(if $(CGO),-race)
NO_RACE  := no C compiler found, so these tests run without the race detector

.PHONY: help notes build fleet install uninstall release release-key install-test run test test-race test-long quick race web-test real-model recordings check try accept figures mutate elsewhere fmt vet lint film reference clients site bench fuzz fuzz-shell chaos soak cover golden again fixtures lists tools clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the static binary bin/coder
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags '$(LDFLAGS)' -o bin/coder ./cmd/coder

fleet: build ## build bin/coder-fleet beside it, which coder fleet starts
	cd fleet && CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -ldflags '$(LDFLAGS)' -o ../bin/coder-fleet ./cmd/coder-fleet

# The program writes its own manual page and completions. It reads no settings and no language of yours for that.
SHARE    := $(DESTDIR)$(PREFIX)/share
PLAIN    := env -i HOME=/nonexistent bin/coder
MANUALS  := $(addprefix $(SHARE)/man/man1/,coder.1 coder-agent.1)
BASH     := $(addprefix $(SHARE)/bash-completion/completions/,coder coder-agent)
ZSH      := $(SHARE)/zsh/site-functions/_coder
NOTE     := $(SHARE)/coder/installed
FISH     := $(addprefix $(SHARE)/fish/vendor_completions.d/,coder.fish coder-agent.fish)
PROGRAMS := $(addprefix $(DESTDIR)$(PREFIX)/bin/,coder coder-agent)
install: build ## install program, manual page and completions: make install PREFIX=~/.local; coder-agent is a second name
	install -d $(sort $(dir $(PROGRAMS) $(MANUALS) $(BASH) $(ZSH) $(FISH) $(NOTE)))
	install -m 755 bin/coder $(word 1,$(PROGRAMS)).new && mv -f $(word 1,$(PROGRAMS)).new $(word 1,$(PROGRAMS))
	$(PLAIN) man > $(word 1,$(MANUALS))
	$(PLAIN) completion bash > $(word 1,$(BASH))
	$(PLAIN) completion zsh > $(ZSH)
	$(PLAIN) completion fish > $(word 1,$(FISH))
	echo make > $(NOTE)
	ln -sf coder $(word 2,$(PROGRAMS))
	ln -sf coder.1 $(word 2,$(MANUALS))
	ln -sf coder $(word 2,$(BASH))
	ln -sf coder.fish $(word 2,$(FISH))

uninstall: ## remove what install put there, and nothing else (coder uninstall shows your data)
	rm -f $(PROGRAMS) $(MANUALS) $(BASH) $(ZSH) $(FISH) $(NOTE)

# A release without SIGNING_KEY is not signed, and its programs never replace themselves.
DIST     ?= dist
release: ## make archives and packages in DIST: make release VERSION=1.2.3 SIGNING_KEY=FILE ADDRESS=https://…
	@test -n "$(VERSION)" || { echo "make release VERSION=1.2.3"; exit 2; }
	$(GO) run ./testkit/release -version "$(VERSION)" -out "$(DIST)" -key "$(SIGNING_KEY)" -next-key "$(NEXT_KEY)" -address "$(ADDRESS)"

release-key: ## make a key that signs releases: make release-key SIGNING_KEY=FILE
	@$(GO) run ./testkit/release -new-key "$(SIGNING_KEY)"

install-test: ## install in every way there is a tool for, from nothing to coder demo, then update and remove
	CODER_INSTALL_TEST=1 $(GO) test -count=1 -v -timeout 60m -run TestInstallFromNothing ./testkit/release

run: build ## run one turn: make run PROMPT="..."; without a provider or a PROMPT, the demo
	@if [ -n "$(PROMPT)" ]; then bin/coder -p "$(PROMPT)"; else bin/coder demo; fi

# The same seeds and the same order every time, so few cases of each property do:
# chance belongs to fuzz and soak.
SEEDED := RAPID_SEED=1 RAPID_CHECKS=30 GORACE=atexit_sleep_ms=0
# Without the race detector, which makes tests up to ten times slower: whole sessions and fleets,
# confined processes, logs damaged at every byte, and packages in which nothing runs side by side.
# race runs those with it too.
LONG   := -e ^coder/cmd/coder$$ -e /host/sandbox$$ -e /store/jsonl$$ -e /model/textcalls$$
ALONE  := -e /arch$$ -e /internal/core/ -e /ui/i18n$$ -e /ui/cells$$ -e /ui/lineedit$$ -e /term/ink$$ -e /term/markdown$$ \
	-e '/agent/\(compact\|complexity\|conversation\|inbox\|prompt\)$$' -e '/authored/\(mention\|usercommand\)$$' \
	-e '/record/\(audit\|seal\|session\|typed\)$$' -e '/report/\(asof\|bundle\|export\|fulltext\|ledger\|provenance\)$$'
# With it in short, and without it in full: what takes long there is real programs by the hundred.
BOTH   := -e /agent/supervisor$$ -e /internal/cli$$ -e '/host/\(lsp\|patch\|shell\|workspace\)$$' -e /policy/risk$$ -e /record/undo$$ \
	-e '/tool/\(codenav\|files\|git\|search\|web\)$$' -e /ui/streamjson$$
# Both halves run side by side, for most of the longest wait for processes. Vet has looked at the
# tests before, and nobody debugs these binaries: linked without their tables they cost half.
TESTS  = all=$$($(GO) list $(PKGS)) || exit; list=$$(echo "$$all" | grep $(2)); [ -z "$$list" ] || $(SEEDED) $(GO) test $(1) -vet=off -ldflags="-s -w" -shuffle=1 -timeout 60m $$list
test: vet ## run every test, most of them with the race detector if there is a C compiler
	@$(MAKE) --no-print-directory -j2 test-race test-long
	@$(if $(RACE),,echo "$(NO_RACE)")
test-race:
	@$(if $(RACE),,echo "$(NO_RACE)")
	@$(call TESTS,$(RACE),-v $(LONG) $(ALONE) $(BOTH))
	@$(if $(RACE),$(call TESTS,$(RACE) -short,$(BOTH)))
	@$(if $(ALL),cd fleet && $(call TESTS,$(RACE),-v /fleetcli$$))
test-long:
	@$(call TESTS,,$(LONG) $(ALONE) $(BOTH))
	@$(if $(ALL),cd fleet && $(call TESTS,,/fleetcli$$))

# Without the packages that are about real processes by the hundred, and without
# the tests that skip themselves because they take long (testing.Short).
SLOW := -e /host/sandbox$$ -e /host/shell$$ -e /host/lsp$$ -e /tool/git$$
quick: vet ## run the tests that are quick, for the inner loop: under a minute
	RAPID_SEED=1 RAPID_CHECKS=10 $(GO) test -short -shuffle=1 -timeout 10m $$($(GO) list $(PKGS) | grep -v $(SLOW))

# Sets pages to the scripts and screens in which WORD stands, as an expression for go test.
PAGES = cd cmd/coder/testdata; pages=$$(grep -lwF -e '$(WORD)' script/*.txtar screens/*.txtar | sed 's|.*/||; s|\.txtar$$||' | paste -sd'|'); \
	cd ../../..; set -x
try: ## run what a small change touches: make try WORD=WORD takes the scripts and screens in which the word stands
	@test -n "$(WORD)" || { echo "make try WORD=WORD: a word of a command, a sentence or a file"; exit 2; }
	@$(PAGES); failed=0; $(GO) test ./internal/arch ./internal/slash ./internal/ui/i18n || failed=1; \
	$(GO) test ./internal/cli -run TestReferencePagesAreFresh || failed=1; \
	$(GO) test ./cmd/coder -run "^(TestScripts|TestScreens)$$/^(help|$$pages)$$" || failed=1; exit $$failed

accept: reference ## rewrite the reference pages, and the pictures of /help and of screens with WORD: make accept WORD=WORD
	@$(PAGES); $(GO) test ./cmd/coder -run "^TestScreens$$/^(help|$$pages)$$" -update && git diff --stat docs cmd

race: ## run the other tests with the race detector too
	@$(if $(RACE),,echo "no C compiler found, and the race detector needs one: install gcc or clang"; exit 2)
	@$(call TESTS,$(RACE),$(LONG) $(ALONE) $(BOTH))

check: fmt notes lint elsewhere test ## everything a change must pass: format, lint, other systems, tests

notes: ## warn about long subjects of recent commits and long lines of the changelog
	@git log -n 20 --no-merges --format='%h %s' | awk '{s = substr($$0, index($$0, " ") + 1)} length(s) > 72 || /;/ {print "warning: subject over 72 characters or with a semicolon: " $$0}'
	@awk 'length > 100 {print "warning: CHANGELOG.md:" NR ": over 100 columns"} END {if (NR > 200) print "warning: CHANGELOG.md has " NR " lines: condense what is not released"}' CHANGELOG.md

elsewhere: ## build and vet for the systems that this one is not
	GOOS=darwin $(GO) vet $(PKGS)
	cd fleet && GOOS=darwin $(GO) vet ./...
	GOOS=windows $(GO) vet cmd/coder/main_windows.go
	GOOS=windows $(GO) build -o /dev/null ./cmd/coder

fmt: ## fail if a file is not formatted
	@bad=$$(gofmt -l .); if [ -n "$$bad" ]; then echo "not formatted:"; echo "$$bad"; exit 1; fi

vet: ## run go vet
	$(GO) vet $(PKGS)
	cd fleet && $(GO) vet ./...

lint: vet ## run staticcheck
	$(TOOL) staticcheck $(PKGS)
	cd fleet && $(GO) tool -modfile=../tools/go.mod staticcheck ./...

film: build ## film the demo at a terminal: docs/film/demo.cast, and a picture of it
	mkdir -p docs/film
	$(GO) run ./testkit/film -program bin/coder -cast docs/film/demo.cast -picture docs/film/demo.svg

reference: ## write the pages of docs/reference that are made from the tables of the program
	$(GO) test ./internal/cli -run TestReferencePagesAreFresh -update

clients: build ## write the types of events and outputs for programs into clients/
	bin/coder events schema | $(GO) run ./testkit/clients clients

figures: ## count what can be counted about the house, into docs/design/figures.md
	$(GO) run ./testkit/figures > docs/design/figures.md.new && mv docs/design/figures.md.new docs/design/figures.md

# The generator is maintained elsewhere: it is installed from PyPI into a folder that goes with the site.
SITE := bin/site
site: ## make the website of docs/ in bin/site/html, with a search; a broken link is an error
	python3 -m venv $(SITE)/venv && $(SITE)/venv/bin/pip install -q -r tools/site/requirements.txt
	NO_MKDOCS_2_WARNING=1 $(SITE)/venv/bin/mkdocs build --strict -f tools/site/mkdocs.yml -d $(CURDIR)/$(SITE)/html
	@echo "$(SITE)/html/index.html"

bench: build ## measure start-up, steps, streams and memory against a baseline in the same run
	$(GO) run ./testkit/bench -coder bin/coder

# Those of which a mistake does the most harm.
WATCHED := policy policy/grant policy/judge policy/mode policy/rule agent/toolrun agent/broker agent/rerun record/timeline record/seal serve report/usage report/asof
mutate: N = 40
mutate: ## break packages in N small ways each and tell what their tests do not notice: make mutate P=./internal/serve N=150
	$(GO) run ./testkit/mutate -n $(N) -seed 1 $(or $(P),$(addprefix ./internal/,$(WATCHED)))

fuzz: ## try new orders and seeds in every test, then fuzz every target for T each: make fuzz T=1m
	$(GO) test -shuffle=on -rapid.checks=1000 $$(grep -rl pgregory.net/rapid --include=*_test.go internal | xargs -n1 dirname | sort -u | sed 's|^|./|')
	@set -e; for pkg in $$($(GO) list $(PKGS)); do \
	  for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(T) $$pkg; \
	  done; done

fuzz-shell: ## judge N made-up command lines and run what only reads in real shells, in a root of their own: make fuzz-shell N=1000000 SEED=1
	CODER_SHELL_LINES=$(N) CODER_SHELL_SEED=$(SEED) $(GO) test -count=1 -timeout 12h -v -run TestShellsDoNoMoreThanWasJudged ./internal/policy/risk

real-model: ## talk to a real llama-server: make real-model URL=http://127.0.0.1:PORT, EDITS=1 if its model can edit files
	@test -n "$(URL)" || { echo "no server was named, so nothing was tried: make real-model URL=http://127.0.0.1:PORT"; exit 0; }
	@test -z "$(URL)" || CODER_REAL_MODEL=$(URL) CODER_REAL_MODEL_EDITS=$(EDITS) $(GO) test -count=1 -v -timeout 60m -run RealModel ./cmd/coder

fixtures: ## have the programs of earlier commits write sessions, then open, continue and undo over 100 of each
	tools/fixtures.sh fd443be 50151c53
	CODER_FIXTURES=17 $(GO) test -count=1 -v -run 'OfEarlierVersions' ./cmd/coder

web-test: ## drive coder web in a real Chromium, if there is one: make web-test PICTURES=folder keeps what it looks like
	cd cmd/coder/testdata/browser && CODER_WEB_PICTURES=$(if $(PICTURES),$(abspath $(PICTURES))) $(GO) test -count=1 -timeout 20m .

recordings: ## play recordings of real providers to every wire: make recordings DIR=folder
	@test -f "$(DIR)/index.json" || { echo "make recordings DIR=folder: a folder with an index.json"; exit 2; }
	CODER_RECORDINGS=$(abspath $(DIR)) $(GO) test -count=1 -run Exchanges ./internal/model/... ./cmd/coder

chaos: N = 300
chaos: ## kill workers and servers of a fleet while it works on N tasks: make chaos N=50 SEED=1
	cd fleet && CODER_CHAOS=$(N) CODER_CHAOS_SEED=$(SEED) $(GO) test -count=1 -timeout 12h -v -run '^Test(Chaos|ANodeThatLeadsDies)$$' ./fleetcli

soak: N = 200
soak: ## kill and resume real sessions on failing disks, two at a time, for N rounds: make soak N=1000 SEED=1
	CODER_SOAK=$(N) $(GO) test $(RACE) -count=1 -timeout 12h -run 'Kill|Crash' ./cmd/coder
	@$(if $(RACE),,echo "$(NO_RACE)")
	CODER_SOAK=$(N) CODER_SOAK_SEED=$(SEED) $(GO) test $(RACE) -count=1 -timeout 12h -v -run '^TestSoak(Others)?$$' ./cmd/coder

cover: ## show test coverage by package
	$(GO) test -coverprofile=coverage.out -coverpkg=./internal/... $(PKGS) >/dev/null && $(GO) tool cover -func=coverage.out | tail -n 1

golden: ## rewrite the golden files after a change you have looked at
	$(GO) test ./internal/ui/... -update
	$(GO) test ./cmd/coder -run 'TestScreens|TestGolden' -update

again: ## run N sessions made by chance again, at every moment: make again N=500
	CODER_TEST_SESSIONS=$(N) $(GO) test ./cmd/coder -run "TestRandom.*Sessions|TestGoldenSessionsOfGit" -timeout 0

# The table is data for tests only: gitleaks is in no go.mod of ours.
lists: ## read the public rule table that the lists of secrets are tested against
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && cd "$$dir" && $(GO) mod init rules 2>/dev/null && \
	$(GO) mod download -json $(GITLEAKS)@latest > found.json && \
	field() { sed -n "s/^\t\"$$1\": \"\(.*\)\",*$$/\1/p" found.json; } && \
	awk -f $(CURDIR)/tools/lists.awk -v version="$$(field Version)" -v date="$$(date +%F)" "$$(field Dir)/config/gitleaks.toml" > $(CURDIR)/internal/core/secret/testdata/gitleaks.txt

tools: ## build the pinned linter, and install the language and MCP servers that tests drive, and the SDKs that drive it, when they are there
	$(TOOL) staticcheck -version
	$(GO) install golang.org/x/tools/gopls@v0.23.0
	-npm install -g pyright typescript-language-server typescript@5 bash-language-server
	-npm install -g --prefix "$${HOME}/.local/share/typescript7" typescript@7
	-python3 -m venv "$${HOME}/.local/share/pylsp" && "$${HOME}/.local/share/pylsp/bin/pip" install -q 'python-lsp-server[pyflakes]'
	-rustup component add rust-analyzer
	-npm install -g @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
	-npm install --prefix "$${HOME}/.local/share/mcp-conformance" node@22 @modelcontextprotocol/conformance @modelcontextprotocol/sdk
	-python3 -m venv "$${HOME}/.local/share/mcp-servers" && "$${HOME}/.local/share/mcp-servers/bin/pip" install -q mcp-server-git mcp-server-fetch
	-python3 -m venv "$${HOME}/.local/share/agent-sdks/python" && "$${HOME}/.local/share/agent-sdks/python/bin/pip" install -q claude-agent-sdk mcp agent-client-protocol
	-npm install --omit=optional --prefix "$${HOME}/.local/share/agent-sdks" @anthropic-ai/claude-agent-sdk @agentclientprotocol/sdk zod typescript
	@for p in clangd rg pdftotext; do command -v $$p >/dev/null || echo "$$p: install the package of your system"; done

clean: ## remove what was built
	rm -rf bin coverage.out
