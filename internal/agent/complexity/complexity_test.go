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
		{"", None},
		{"   \n ", None},
		{"hi", None},
		{strings.Repeat("字", 39), None},
		{"  " + strings.Repeat("字", 39) + "\n\t ", None},
		{strings.Repeat("字", 40), Length},
		{" " + strings.Repeat("x", 40) + " ", Length},
		{strings.Repeat("x", 39), None},

		{"重构并且优化", Keywords},
		{"重构并优化", None},
		{"重构重构重构", None},
		{"迁移步骤分别", Keywords},
		{"同时另外", None},
		{"also refactor, then migrate", Keywords},
		{"refactor and optimise", None},
		{"Refactor Migrate OPTIMIZE", Keywords},
		{"steps stepson stepping also", None},

		{"a，b", None},
		{"a，b，c", Segments},
		{"a，，b， ,\n", None},
		{"a。b；c", Segments},
		{"a、b,c", Segments},
		{"a\nb\nc", Segments},
		{"a;b;c. d", None},

		{"1. x 2. y 3. z", Enumeration},
		{"1. x 2. y", None},
		{"1.改甲 2.改乙 3.改丙", Enumeration},
		{"(1) a (2) b (3) c", Enumeration},
		{"①甲②乙③丙", Enumeration},
		{"2. x 3. y 4. z", None},
		{"1. x 3. y 2. z", None},
		{"go 1.2.3 and v1.2.3", None},
		{"use 1.1 2.2 3.3", None},
		{"A/B/C", Enumeration},
		{"完成A/B/C", Enumeration},
		{"do A / B / C now", Enumeration},
		{"A/B", None},
		{"read a/b/c", None},
		{"AB/BC/CD", None},
		{"A/C/B", None},
		{"A. x B. y C. z", Enumeration},
		{"call A.B.C", None},
		{strings.Repeat("字", 50) + "\n1. a\n2. b\n3. c", Enumeration},
		{strings.Repeat("重构并且优化，", 20), Length},
		{"重构，并且，优化", Keywords},
	} {
		complex, reason := Judge(tt.text)
		if reason != tt.want || complex != (tt.want != None) {
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
		if got := Steps(tt.text); !slices.Equal(got, tt.want) {
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
	steps := Steps(text)
	if len(steps) != maxSteps || utf8.RuneCountInString(steps[0]) > maxStepRunes {
		t.Errorf("%d steps, the first of %d characters", len(steps), utf8.RuneCountInString(steps[0]))
	}
}

func FuzzJudge(f *testing.F) {
	for _, s := range []string{"1. a 2. b 3. c", "A/B/C", "①②③", "重构，并且\n优化", "\xff1.\xfe", "1", "A", "1)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		complex, reason := Judge(text)
		if again, why := Judge("\n " + text + " \t"); again != complex || why != reason {
			t.Errorf("blanks around %q change the judgement: %q, %q", text, reason, why)
		}
		if n := utf8.RuneCountInString(strings.TrimSpace(text)); n >= minLength && !complex {
			t.Errorf("%d characters are simple", n)
		}
		for _, s := range Steps(text) {
			if s == "" || strings.ContainsAny(s, "\n") {
				t.Errorf("step %q of %q", s, text)
			}
		}
	})
}
