package cli

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"coder/internal/app"
	"coder/internal/config"
)

// The scripts for shell completion. They call the program ([completeCommand]), so they need no change when
// commands or flags are added.
var (
	//go:embed completion/coder.bash
	bashCompletion string
	//go:embed completion/coder.zsh
	zshCompletion string
	//go:embed completion/coder.fish
	fishCompletion string
	//go:embed completion/coder.ps1
	powershellCompletion string
)

var shellNames = []string{"bash", "zsh", "fish", "powershell"}

// runCompletion prints the completion script for a shell.
func (inv *invocation) runCompletion(context.Context) error {
	script, ok := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion,
		"powershell": powershellCompletion}[strings.Join(inv.flags.args, " ")]
	if !ok {
		return usageErrorf("coder completion needs a shell name: bash, zsh, fish or powershell")
	}
	_, err := fmt.Fprint(inv.Stdout, script)
	return err
}

// completeCommand is the first argument of a script's request to complete the last of the following words.
const completeCommand = "__complete"

// Instructions to the script.
const (
	completeFilesHint = ":files"
	completeDirsHint  = ":dirs"
)

// completeWords prints the completions of the last word, one a line: the word, a tab and its description.
func (inv *invocation) completeWords(ctx context.Context, words []string) error {
	line, prefix := splitCompletion(words)
	current, before := line[len(line)-1], line[:len(line)-1]
	inv.loadSettings(&flags{Options: app.Options{Overrides: app.Overrides{Lang: flagValue("lang", before),
		Provider: flagValue("provider", before), Profile: flagValue("profile", before)}}})
	print := func(word, about string) {
		if strings.HasPrefix(word, current) {
			fmt.Fprintf(inv.Stdout, "%s%s\t%s\n", prefix, word, singleLine(about))
		}
	}
	opts := allOptions()
	known := allFlags()
	find := func(name string) (option, bool) {
		i := slices.IndexFunc(known, func(o option) bool {
			return name == "--"+o.long || o.short != "" && name == "-"+
				o.short
		})
		if i < 0 {
			return option{}, false
		}
		return known[i], true
	}
	var plain []string // words that are neither flags nor their values
	for i := 0; i < len(before); i++ {
		if before[i] == "--" {
			return nil // a prompt
		}
		o, isFlag := find(before[i])
		switch {
		case isFlag && o.value != "" && i == len(before)-1:
			offered := false
			inv.completeValue(ctx, o, func(word, about string) { offered = true; print(word, about) })
			if !o.optional || offered { // a subcommand is not a session
				return nil
			}
		case isFlag && o.value != "" && !o.optional:
			i++
		case !strings.HasPrefix(before[i], "-"):
			plain = append(plain, before[i])
		}
	}
	if strings.HasPrefix(current, "-") {
		for _, o := range opts {
			if o.command == "" || len(plain) > 0 && o.isOwnOf(plain[0]) {
				print("--"+o.long, inv.printer.T(o.help))
			}
		}
		return nil
	}
	inv.completeWord(ctx, plain, print)
	return nil
}

// splitCompletion returns the line as the program would receive it, its last word being the one typed, and
// the part of that word before it. Some shells split words at "=" too.
func splitCompletion(words []string) (line []string, prefix string) {
	for i, w := range words {
		switch {
		case w == "=" && len(line) > 0 && strings.HasPrefix(line[len(line)-1], "--"):
			if i == len(words)-1 {
				line = append(line, "")
			}
			continue
		case strings.HasPrefix(w, "--") && strings.Contains(w, "="):
			name, value, _ := strings.Cut(w, "=")
			line = append(line, name, value)
			if i == len(words)-1 {
				prefix = name + "="
			}
			continue
		}
		line = append(line, w)
	}
	if len(line) == 0 {
		line = []string{""}
	}
	return line, prefix
}

// completeValue prints the possible values of a flag.
func (inv *invocation) completeValue(ctx context.Context, o option, print func(word, about string)) {
	switch {
	case strings.HasPrefix(o.value, "FILE"):
		fmt.Fprintln(inv.Stdout, completeFilesHint)
	case strings.Contains(o.value, "|"):
		for _, v := range strings.Split(o.value, "|") {
			print(v, "")
		}
	case o.value == "DIR":
		fmt.Fprintln(inv.Stdout, completeDirsHint)
	case o.long == "resume":
		inv.completeSessions(ctx, print)
	case o.long == "model":
		a, err := inv.newApp(func(string) {})
		if err != nil {
			return
		}
		for _, name := range a.KnownModels() {
			if !strings.ContainsAny(name, specialChars) {
				print(name, "")
			}
		}
	case o.long == "provider":
		for _, preset := range config.Presets() {
			print(preset.Name, preset.Title)
		}
	case o.long == "profile":
		for _, name := range slices.Sorted(maps.Keys(inv.settings.Config.Profiles)) {
			print(name, "")
		}
	}
}

// specialChars are characters with a meaning to a shell or to the script. A name goes into the command
// line unquoted, and servers choose their names.
const specialChars = " \t\r\n\x1b\"'`$\\&|;<>()*?[]{}!"

// completeWord prints the possible next words that are not flags.
func (inv *invocation) completeWord(ctx context.Context, plain []string, print func(word, about string)) {
	all := subcommands()
	if len(plain) == 0 {
		for _, s := range all {
			print(s.name, inv.printer.T(s.usages[0].description))
		}
		return
	}
	i := slices.IndexFunc(all, func(s subcommand) bool { return s.name == plain[0] })
	if i < 0 {
		return
	}
	if len(plain) == 1 {
		for _, verb := range all[i].verbs {
			print(verb, "")
		}
	}
	switch what := strings.Join(plain, " "); what {
	case "bug", "export", "watch", "show", "diff", "context", "replay", "golden save", "audit", "audit show", "audit verify":
		inv.completeSessions(ctx, print)
	case "golden run":
		if a, err := inv.newApp(func(string) {}); err == nil {
			for _, name := range a.GoldenNames() {
				print(name, "")
			}
		}
	case "plugin remove":
		if a, err := inv.newApp(func(string) {}); err == nil {
			added, _ := a.PluginBook().Load()
			for _, p := range added {
				print(p.Name, p.Description)
			}
		}
	case "mcp get", "mcp remove", "mcp test", "mcp login", "mcp logout":
		if a, err := inv.newApp(func(string) {}); err == nil {
			for _, s := range a.MCPServers() {
				print(s.Name, "")
			}
		}
	case "import", "why", "blame":
		fmt.Fprintln(inv.Stdout, completeFilesHint)
	case "trust", "plugin add":
		fmt.Fprintln(inv.Stdout, completeDirsHint)
	}
}

// completeSessions prints the sessions, newest first.
func (inv *invocation) completeSessions(ctx context.Context, print func(word, about string)) {
	a, err := inv.newApp(func(string) {})
	if err != nil {
		return
	}
	heads, _ := a.Store().ListHeads(ctx)
	for _, h := range heads {
		print(h.ID, cmp.Or(h.Meta.Title, h.Updated.Format("2006-01-02 15:04")))
	}
}
