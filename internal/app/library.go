package app

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/authored/skills"
	"coder/internal/authored/usercommand"
	"coder/internal/host/repofile"
	"coder/internal/policy"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
)

// library is what the person and the project have written down: skills and
// commands.
type library struct {
	skills   *skills.Catalogue
	commands *usercommand.Catalogue
	own      string // the folder of the person's own commands; "" if there is none
}

// library is what was written down for this workspace. It is read when it is first asked for, and
// what is wrong with it is said once, then.
func (a *App) library() *library {
	if a.lib != nil {
		return a.lib
	}
	a.lib = &library{skills: skills.New(a.skillRoots()...)}
	roots := []usercommand.Root{{Path: ".coder/commands", Files: repofile.Below(a.Root).Sub(".coder/commands")}}
	if a.Home != "" {
		a.lib.own = filepath.ToSlash(filepath.Join(a.Home, "commands"))
		roots = append(roots, usercommand.Root{Path: a.lib.own, Files: repofile.OwnDir(a.lib.own)})
	}
	a.lib.commands = usercommand.New(roots...)
	_, badSkills := a.lib.skills.List()
	for _, w := range badSkills {
		a.warn(fmt.Sprintf("skill file %s", w))
	}
	_, badCommands := a.lib.commands.List()
	for _, w := range badCommands {
		a.warn(fmt.Sprintf("command file %s", w))
	}
	return a.lib
}

// skillRoots are the folders of skills, the strongest first: the project's,
// those the configuration adds, the person's own.
func (a *App) skillRoots() []skills.Root {
	var roots []skills.Root
	seen := make(map[string]bool)
	add := func(shown, dir string) {
		if dir = filepath.Clean(dir); !seen[dir] {
			seen[dir] = true
			roots = append(roots, skills.Root{Path: filepath.ToSlash(shown), Files: a.folder(dir)})
		}
	}
	others := []string{".agents", ".claude"}
	for _, folder := range slices.Concat([]string{".coder"}, others) {
		add(folder+"/skills", filepath.Join(a.Root, folder, "skills"))
	}
	user := a.Env.Getenv("HOME")
	for _, dir := range a.Config.Skills.Paths {
		at := dir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && user != "" {
			at = filepath.Join(user, rest)
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(a.Root, at)
		}
		add(dir, at)
	}
	if a.Home != "" {
		add(filepath.Join(a.Home, "skills"), filepath.Join(a.Home, "skills"))
	}
	if user != "" {
		for _, folder := range others {
			dir := filepath.Join(user, folder, "skills")
			add(dir, dir)
		}
	}
	return roots
}

// folder is a folder of files that people wrote: one in the workspace is the
// repository's, any other is the person's own.
func (a *App) folder(dir string) fs.FS {
	if rel, err := filepath.Rel(a.Root, dir); err == nil && filepath.IsLocal(rel) {
		return repofile.Below(a.Root).Sub(rel)
	}
	return repofile.OwnDir(dir)
}

// skillSummary tells the model which skills there are, where it can load them.
func (a *App) skillSummary(m mode.Mode) string {
	if !m.Has("skill") || a.forbidden("skill") {
		return ""
	}
	list, _ := a.library().skills.List()
	return skills.Summary(list, prompt.SkillsLimit)
}

// loreFor is the lore as a session uses it.
func (a *App) loreFor(t *toolkit) *orchestrator.Library {
	l := a.library()
	return &orchestrator.Library{
		Files: t.project.ws, Commands: l.commands, Skills: l.skills, Models: a.Config.Provider.Models,
		Offers: func(c usercommand.Command, tool string) bool { return namesTool(a.allowedBy(c), tool) },
	}
}

// inCommands is j with what the header of a command says about tools while the
// command runs. Tools it does not name are refused. Those it names run unasked
// where only the mode would ask, if the command is the person's own; a
// project's command may leave tools out and no more.
func (a *App) inCommands(j *judge.Judge) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		cmd, ok := orchestrator.CommandOf(ctx)
		if !ok || len(cmd.AllowedTools) == 0 {
			return j.Judge(ctx, c)
		}
		allowed := a.allowedBy(cmd)
		switch {
		case !namesTool(allowed, c.Tool):
			text := fmt.Sprintf("the command /%s does without %s", cmd.Name, c.Tool)
			return policy.Opinion{Reasons: []policy.Reason{{By: "command", Text: text, Rule: "allowed-tools of /" + cmd.Name}}}, nil
		case a.library().isOwn(cmd):
			return j.Allowing(allowed).Judge(ctx, c)
		}
		return j.Judge(ctx, c)
	})
}

// isOwn reports whether a command stands in the person's own folder.
func (l *library) isOwn(c usercommand.Command) bool {
	return l.own != "" && strings.HasPrefix(c.Path, l.own+"/")
}

// allowedBy reads the tools that the header of a command names, under their own
// names here. What cannot be read names nothing.
func (a *App) allowedBy(c usercommand.Command) (specs []rule.Spec) {
	for _, word := range c.AllowedTools {
		list, err := rule.ParseSpecs(word)
		if err != nil {
			continue
		}
		for _, s := range list {
			if t, ok := a.set.Lookup(s.Tool); ok {
				s.Tool = t.Spec().Name
			}
			specs = append(specs, s)
		}
	}
	return specs
}

func namesTool(specs []rule.Spec, tool string) bool {
	return slices.ContainsFunc(specs, func(s rule.Spec) bool {
		ok, err := path.Match(strings.ToLower(s.Tool), strings.ToLower(tool))
		return err == nil && ok
	})
}
