package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/core/nearest"
	"coder/internal/policy"
	"coder/internal/policy/confine"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/risk"
)

// newJudge puts the rules of the person, of this run and of the mode together.
func (h *house) newJudge(c *confine.Confiner, t *terrain) (*judge.Judge, error) {
	given, err := h.givenRules()
	if err != nil {
		return nil, err
	}
	a := h.conf.Approval
	unasked := a.AutoApproveAsk || !a.Interactive
	return judge.New(judge.Options{
		State: h.state, Root: h.root, Home: h.env.Getenv("HOME"), Bash: h.shell.Bash(), Env: h.childEnv(),
		Frozen: h.conf.Permission.Frozen, Tracked: t.trackedSecrets,
		Hidden:  func() bool { return c.Hides(context.Background()) },
		Freezes: func() bool { return c.Freezes(context.Background()) },
		Given:   given, Allow: h.flags.allowTools, Deny: h.flags.denyTools, Exact: h.conf.Permission.AllowlistMatch == "exact",
		Hosts: h.conf.Fetch.AllowHosts, Now: h.env.Now,
		Unasked: unasked, Fearless: unasked && a.DangerousNoninteractive == "allow",
	}), nil
}

// remember gives the judge its memory. Where there is no home nothing is
// remembered.
func (h *house) remember(j *judge.Judge) *judge.Memory {
	if h.home == "" {
		return nil
	}
	m, err := j.Remember(filepath.Join(h.home, "always"), h.conf.Permission.CommandAllowlist)
	if err != nil {
		h.warn(fmt.Sprintf("what was always allowed here could not be read, so it is asked about again: %v", err))
	}
	return m
}

// givenRules are the rules that a person wrote, without the defaults.
func (h *house) givenRules() (map[string]risk.Patterns, error) {
	given := make(map[string]risk.Patterns)
	add := func(tool, pattern, word string) error {
		v, err := policy.ParseVerdict(word)
		if err != nil {
			return configf("permission.%s: %v", tool, err)
		}
		if given[tool] == nil {
			given[tool] = make(risk.Patterns)
		}
		given[tool][pattern] = v
		return nil
	}
	for name, patterns := range h.conf.Permission.Tools {
		if err := h.checkRuleName(name); err != nil {
			return nil, err
		}
		for pattern, word := range patterns {
			if h.report.RuleOrigin(name, pattern) == (config.Origin{}) {
				continue
			}
			if err := add(name, pattern, word); err != nil {
				return nil, err
			}
		}
	}
	if h.report.Origin("permission.default") == (config.Origin{}) {
		return given, nil
	}
	return given, add("default", "*", h.conf.Permission.Default)
}

// switches are the tools a person switched on or off, by mode.
func (h *house) switches() (map[string]map[string]bool, error) {
	a := h.conf.Agents
	all := make(map[string]map[string]bool)
	for mode, agent := range map[string]config.Agent{
		mode.Plan: a.Plan, mode.Build: a.Build, mode.Default: a.DefaultMode, mode.AutoEdit: a.AutoEdit, mode.Yolo: a.Yolo,
	} {
		all[mode] = make(map[string]bool)
		for name, word := range agent.Tools {
			if word != "on" && word != "off" {
				return nil, configf("agents.%s.tools.%s: want on or off, found %q", mode, name, word)
			}
			all[mode][name] = word == "on"
		}
	}
	return all, nil
}

// newState starts the session in the mode the person chose.
func (h *house) newState() error {
	switches, err := h.switches()
	if err != nil {
		return err
	}
	if h.state, err = mode.NewState(cmp.Or(h.flags.mode, h.conf.Agents.Default), switches); err != nil {
		return configf("agents.default: %v", err)
	}
	return nil
}

// ruleNames are the words under permission that are not a tool of today.
var ruleNames = []string{
	"default", "read", "write", "bash", "fetch", "note",
	"patch", "question", "skill", "task", "todoread", "todowrite", "search_code", "external_directory",
	"git_status", "git_diff", "git_log", "git_add", "git_commit",
	"lsp_diagnostics", "lsp_definition", "lsp_hover", "lsp_references",
}

// checkRuleName refuses a rule for what looks like a misspelt tool: a deny that
// protects nothing is worse than none.
func (h *house) checkRuleName(name string) error {
	known := ruleNames
	for s := range h.set.Specs() {
		known = append(known[:len(known):len(known)], s.Name)
	}
	if slices.Contains(known, name) || strings.HasPrefix(name, "mcp__") {
		return nil
	}
	if _, ok := h.set.Lookup(name); ok {
		return nil
	}
	if near := nearest.Of(name, known); near != "" {
		return configf("permission.%s: there is no tool %q; did you mean %q?", name, name, near)
	}
	h.warn(fmt.Sprintf("permission.%s: there is no tool %q", name, name))
	return nil
}
