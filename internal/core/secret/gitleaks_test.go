package secret

import (
	_ "embed"
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"coder/internal/core/lists"
)

//go:embed testdata/gitleaks.txt
var gitleaks string

// uncovered are rules of gitleaks whose secrets our lists let pass, with the reason.
var uncovered = map[string]string{
	"curl-auth-header": "a line of code, not a kind of key; web tokens and known keys in it are masked",
	"curl-auth-user":   "a line of code; passwords in addresses are masked",
}

// TestTheRulesOfGitleaksAreCovered takes from each rule a text it finds: it is masked in
// records, or a variable called like the rule is withheld, or a file called like it is
// secret.
func TestTheRulesOfGitleaksAreCovered(t *testing.T) {
	rules := lists.Sections(gitleaks)
	if len(rules) < 200 {
		t.Fatalf("only %d rules", len(rules))
	}
	for id, facts := range rules {
		is := make(map[string]string)
		for _, fact := range facts {
			key, value, _ := strings.Cut(fact, " ")
			is[key] = value
		}
		covered := false
		if is["regex"] == "" {
			covered = IsSecretFile(strings.Trim(sampleOf(t, is["path"], false), "/"))
		} else {
			text := " " + sampleOf(t, is["regex"], false) + " "
			name := strings.ToUpper(strings.ReplaceAll(id, "-", "_"))
			public := strings.HasSuffix(id, "-id") || strings.Contains(id, "-pub") // who somebody is, not what proves it
			covered = ShapeConcealer().Text(text) != text || IsSecretVariable(name, sampleOf(t, is["regex"], true)) || public
		}
		if _, known := uncovered[id]; covered == known {
			t.Errorf("%s: covered is %v", id, covered)
		}
	}
	for id := range uncovered {
		if rules[id] == nil {
			t.Errorf("there is no rule %s", id)
		}
	}
}

// sampleOf is a text that an expression matches, or what its first group does.
func sampleOf(t *testing.T, expr string, group bool) string {
	t.Helper()
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	chance := rand.New(rand.NewPCG(1, 2))
	var captured string
	var write func(re *syntax.Regexp) string
	write = func(re *syntax.Regexp) string {
		text, times := "", 1
		switch re.Op {
		case syntax.OpLiteral:
			return string(re.Rune)
		case syntax.OpCharClass:
			var all, plain []rune
			for i := 0; i < len(re.Rune); i += 2 {
				for r := re.Rune[i]; r <= min(re.Rune[i+1], 'z'); r++ {
					if all = append(all, r); r < 128 && letterBytes[r] {
						plain = append(plain, r)
					}
				}
			}
			if len(plain) > 0 {
				all = plain
			}
			return string(all[chance.IntN(len(all))])
		case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			return "."
		case syntax.OpAlternate:
			return write(re.Sub[0])
		case syntax.OpRepeat:
			times = re.Min
		case syntax.OpStar, syntax.OpQuest:
			times = 0
		}
		for range times {
			for _, sub := range re.Sub {
				text += write(sub)
			}
		}
		if re.Op == syntax.OpCapture && captured == "" {
			captured = text
		}
		return text
	}
	if text := write(re); !group || captured == "" {
		return text
	}
	return captured
}
