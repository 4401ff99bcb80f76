package rule_test

import (
	"testing"

	"coder/internal/policy"
	"coder/internal/policy/rule"
	"coder/internal/tool"
)

func TestRulesJudgeByEffectUnlessTheToolIsNamed(t *testing.T) {
	rules := rule.Rules{"default": policy.Ask, "read": policy.Allow, "write": policy.Ask, "bash": policy.Deny, "edit": policy.Allow, "grep": policy.Deny}
	tests := []struct {
		name, tool string
		effects    []tool.Kind
		want       policy.Verdict
	}{
		{"reading", "read", []tool.Kind{tool.Read}, policy.Allow},
		{"a reader nobody named", "glob", []tool.Kind{tool.Read, tool.Read}, policy.Allow},
		{"a reader that is named", "grep", []tool.Kind{tool.Read}, policy.Deny},
		{"writing", "write", []tool.Kind{tool.Write}, policy.Ask},
		{"a writer that is named", "edit", []tool.Kind{tool.Write}, policy.Allow},
		{"running", "job", []tool.Kind{tool.Exec}, policy.Deny},
		{"the strictest effect decides", "job", []tool.Kind{tool.Read, tool.Exec, tool.Write}, policy.Deny},
		{"no rule for the network", "fetch", []tool.Kind{tool.Net}, policy.Ask},
		{"what nobody can tell", "mcp", []tool.Kind{tool.Unknown}, policy.Ask},
		{"no effects at all", "odd", nil, policy.Ask},
		{"the program's own notes", "todowrite", []tool.Kind{tool.Note}, policy.Allow},
		{"notes and more", "odd", []tool.Kind{tool.Note, tool.Write}, policy.Ask},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var plan tool.Plan
			for _, k := range tt.effects {
				plan.Effects = append(plan.Effects, tool.Effect{Kind: k})
			}
			o, err := rules.Judge(t.Context(), policy.Case{Tool: tt.tool, Plan: plan})
			if err != nil || o.Verdict != tt.want {
				t.Errorf("got %v %v, want %v", o.Verdict, err, tt.want)
			}
			if tt.want != policy.Allow && !o.Waivable() {
				t.Error("a rule's own reason must be one a person can waive")
			}
		})
	}
}

func TestNoRulesDeny(t *testing.T) {
	o, err := rule.Rules(nil).Judge(t.Context(), policy.Case{Tool: "read", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Read}}}})
	if err != nil || o.Verdict != policy.Deny {
		t.Errorf("got %v, %v; want a denial", o.Verdict, err)
	}
}

func TestNotesObeyTheirOwnRules(t *testing.T) {
	note := policy.Case{Tool: "todowrite", Plan: tool.Plan{Effects: []tool.Effect{{Kind: tool.Note, Target: "todo list"}}}}
	for _, tt := range []struct {
		name  string
		rules rule.Rules
		want  policy.Verdict
	}{
		{"a default that denies is for other things", rule.Rules{"default": policy.Deny}, policy.Allow},
		{"the rule for notes", rule.Rules{"default": policy.Allow, "note": policy.Deny}, policy.Deny},
		{"the rule for the tool", rule.Rules{"note": policy.Allow, "todowrite": policy.Ask}, policy.Ask},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if o, err := tt.rules.Judge(t.Context(), note); err != nil || o.Verdict != tt.want {
				t.Errorf("got %v, %v; want %v", o.Verdict, err, tt.want)
			}
		})
	}
}
