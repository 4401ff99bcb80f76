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

// lore is what the person and the project have written down: skills and
// commands.
type lore struct {
	skills   *skills.Catalogue
	commands *usercommand.Catalogue
	own      string // the folder of the person's own commands; "" if there is none
}

// written is the lore of this house. It is read when it is first asked for, and
// what is wrong with it is said once, then.
func (h *house) written() *lore {
	if h.lore != nil {
		return h.lore
	}
	h.lore = &lore{skills: skills.New(h.skillRoots()...)}
	roots := []usercommand.Root{{Path: ".coder/commands", Files: repofile.Below(h.root).Sub(".coder/commands")}}
	if h.home != "" {
		h.lore.own = filepath.ToSlash(filepath.Join(h.home, "commands"))
		roots = append(roots, usercommand.Root{Path: h.lore.own, Files: repofile.OwnDir(h.lore.own)})
	}
	h.lore.commands = usercommand.New(roots...)
	_, badSkills := h.lore.skills.List()
	for _, w := range badSkills {
		h.warn(fmt.Sprintf("skill file %s", w))
	}
	_, badCommands := h.lore.commands.List()
	for _, w := range badCommands {
		h.warn(fmt.Sprintf("command file %s", w))
	}
	return h.lore
}

// skillRoots are the folders of skills, the strongest first: the project's,
// those the configuration adds, the person's own.
func (h *house) skillRoots() []skills.Root {
	var roots []skills.Root
	seen := make(map[string]bool)
	add := func(shown, dir string) {
		if dir = filepath.Clean(dir); !seen[dir] {
			seen[dir] = true
			roots = append(roots, skills.Root{Path: filepath.ToSlash(shown), Files: h.folder(dir)})
		}
	}
	others := []string{".agents", ".claude"}
	for _, folder := range slices.Concat([]string{".coder"}, others) {
		add(folder+"/skills", filepath.Join(h.root, folder, "skills"))
	}
	user := h.env.Getenv("HOME")
	for _, dir := range h.conf.Skills.Paths {
		at := dir
		if rest, ok := strings.CutPrefix(dir, "~/"); ok && user != "" {
			at = filepath.Join(user, rest)
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(h.root, at)
		}
		add(dir, at)
	}
	if h.home != "" {
		add(filepath.Join(h.home, "skills"), filepath.Join(h.home, "skills"))
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
func (h *house) folder(dir string) fs.FS {
	if rel, err := filepath.Rel(h.root, dir); err == nil && filepath.IsLocal(rel) {
		return repofile.Below(h.root).Sub(rel)
	}
	return repofile.OwnDir(dir)
}

// skillSummary tells the model which skills there are, where it can load them.
func (h *house) skillSummary(m mode.Mode) string {
	if !m.Has("skill") || h.forbidden("skill") {
		return ""
	}
	list, _ := h.written().skills.List()
	return skills.Summary(list, prompt.SkillsLimit)
}

// loreFor is the lore as a session uses it.
func (h *house) loreFor(hands *hands) *orchestrator.Library {
	l := h.written()
	return &orchestrator.Library{
		Files: hands.project.ws, Commands: l.commands, Skills: l.skills, Models: h.conf.Provider.Models,
		Offers: func(c usercommand.Command, tool string) bool { return namesTool(h.allowedBy(c), tool) },
	}
}

// inCommands is j with what the header of a command says about tools while the
// command runs. Tools it does not name are refused. Those it names run unasked
// where only the mode would ask, if the command is the person's own; a
// project's command may leave tools out and no more.
func (h *house) inCommands(j *judge.Judge) policy.Policy {
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		cmd, ok := orchestrator.CommandOf(ctx)
		if !ok || len(cmd.AllowedTools) == 0 {
			return j.Judge(ctx, c)
		}
		allowed := h.allowedBy(cmd)
		switch {
		case !namesTool(allowed, c.Tool):
			text := fmt.Sprintf("the command /%s does without %s", cmd.Name, c.Tool)
			return policy.Opinion{Reasons: []policy.Reason{{By: "command", Text: text, Rule: "allowed-tools of /" + cmd.Name}}}, nil
		case h.written().isOwn(cmd):
			return j.Allowing(allowed).Judge(ctx, c)
		}
		return j.Judge(ctx, c)
	})
}

// isOwn reports whether a command stands in the person's own folder.
func (l *lore) isOwn(c usercommand.Command) bool {
	return l.own != "" && strings.HasPrefix(c.Path, l.own+"/")
}

// allowedBy reads the tools that the header of a command names, under their own
// names here. What cannot be read names nothing.
func (h *house) allowedBy(c usercommand.Command) (specs []rule.Spec) {
	for _, word := range c.AllowedTools {
		list, err := rule.ParseSpecs(word)
		if err != nil {
			continue
		}
		for _, s := range list {
			if t, ok := h.set.Lookup(s.Tool); ok {
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
