package complexity

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Reason
	}{
		{"", ReasonNone},
		{"   \n ", ReasonNone},
		{"hi", ReasonNone},
		{strings.Repeat("字", 39), ReasonNone},
		{"  " + strings.Repeat("字", 39) + "\n\t ", ReasonNone},
		{strings.Repeat("字", 40), ReasonLength},
		{" " + strings.Repeat("x", 40) + " ", ReasonLength},
		{strings.Repeat("x", 39), ReasonNone},

		{"重构并且优化", ReasonKeywords},
		{"重构并优化", ReasonNone},
		{"重构重构重构", ReasonNone},
		{"迁移步骤分别", ReasonKeywords},
		{"同时另外", ReasonNone},
		{"also refactor, then migrate", ReasonKeywords},
		{"refactor and optimise", ReasonNone},
		{"Refactor Migrate OPTIMIZE", ReasonKeywords},
		{"steps stepson stepping also", ReasonNone},

		{"a，b", ReasonNone},
		{"a，b，c", ReasonSegments},
		{"a，，b， ,\n", ReasonNone},
		{"a。b；c", ReasonSegments},
		{"a、b,c", ReasonSegments},
		{"a\nb\nc", ReasonSegments},
		{"a;b;c. d", ReasonNone},

		{"1. x 2. y 3. z", ReasonEnumeration},
		{"1. x 2. y", ReasonNone},
		{"1.改甲 2.改乙 3.改丙", ReasonEnumeration},
		{"(1) a (2) b (3) c", ReasonEnumeration},
		{"①甲②乙③丙", ReasonEnumeration},
		{"2. x 3. y 4. z", ReasonNone},
		{"1. x 3. y 2. z", ReasonNone},
		{"go 1.2.3 and v1.2.3", ReasonNone},
		{"use 1.1 2.2 3.3", ReasonNone},
		{"A/B/C", ReasonEnumeration},
		{"完成A/B/C", ReasonEnumeration},
		{"do A / B / C now", ReasonEnumeration},
		{"A/B", ReasonNone},
		{"read a/b/c", ReasonNone},
		{"AB/BC/CD", ReasonNone},
		{"A/C/B", ReasonNone},
		{"A. x B. y C. z", ReasonEnumeration},
		{"call A.B.C", ReasonNone},
		{strings.Repeat("字", 50) + "\n1. a\n2. b\n3. c", ReasonEnumeration},
		{strings.Repeat("重构并且优化，", 20), ReasonLength},
		{"重构，并且，优化", ReasonKeywords},
	} {
		complex, reason := IsComplex(tt.text)
		if reason != tt.want || complex != (tt.want != ReasonNone) {
			t.Errorf("%q is %v because of %q, want %q", tt.text, complex, reason, tt.want)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"fix the bug", nil},
		{"1. only one", nil},
		{"Please:\n1. read it\n2. change it,\n   with care\n3) test it.", []string{"read it", "change it", "test it"}},
		{"1. 读 2. 改；3. 测", []string{"读", "改", "测"}},
		{"(1) a (2) b", []string{"a", "b"}},
		{"bump 1.2 to 1.3", nil},
		{"A) left\nB) right", []string{"left", "right"}},
		{"1. a 2. b 1. x 2. y 3. z", []string{"x", "y", "z"}},
	} {
		if got := ParseSteps(tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q has the steps %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestStepsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 99 {
		b.WriteString(strings.Repeat("字", 300) + "\n" + string(rune('0'+(i+1)/10)) + string(rune('0'+(i+1)%10)) + ". ")
	}
	text := strings.NewReplacer("\n0", "\n").Replace(b.String())
	steps := ParseSteps(text)
	if len(steps) != maxSteps || utf8.RuneCountInString(steps[0]) > maxStepRunes {
		t.Errorf("%d steps, the first of %d characters", len(steps), utf8.RuneCountInString(steps[0]))
	}
}

func FuzzJudge(f *testing.F) {
	for _, s := range []string{"1. a 2. b 3. c", "A/B/C", "①②③", "重构，并且\n优化", "\xff1.\xfe", "1", "A", "1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		complex, reason := IsComplex(text)
		if again, why := IsComplex("\n " + text + " \t"); again != complex || why != reason {
			t.Errorf("blanks around %q change the judgement: %q, %q", text, reason, why)
		}
		if n := utf8.RuneCountInString(strings.TrimSpace(text)); n >= minLength && !complex {
			t.Errorf("%d characters are simple", n)
		}
		for _, s := range ParseSteps(text) {
			if s == "" || strings.ContainsAny(s, "\n") {
				t.Errorf("step %q of %q", s, text)
			}
		}
	})
}
