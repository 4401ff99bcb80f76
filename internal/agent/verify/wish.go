package verify

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A runner is how a test command begins when it stands in the middle of a
// sentence. A bare one that is also plain English is not taken for a command.
type runner struct {
	begins string
	prose  bool
}

var runners = []runner{
	{"go test", true}, {"pytest", true}, {"pnpm test", false}, {"npm test", false}, {"yarn test", false},
	{"cargo test", false}, {"mvn -q test", false}, {"mvn test", false}, {"./gradlew test", false}, {"gradle test", false},
}

// tools begin a test command when it stands in quotes, where every word counts.
var tools = []string{
	"go", "pytest", "python", "python3", "tox", "npm", "pnpm", "yarn", "npx", "bun", "deno", "cargo", "mvn", "gradle", "./gradlew",
	"make", "just", "task", "ctest", "bazel", "dotnet", "rake", "bundle", "mix",
}

// named lists the test commands that a person wants to be run, in their order.
func named(text string) []string {
	var found []string
	from := 0 // where the next one stands at the earliest
	add := func(command string) {
		at := max(0, strings.Index(text[from:], command)) + from
		from = min(at+len(command), len(text))
		if !slices.Contains(found, command) && !mentions(text, at, from) && !refuses(text, at) {
			found = append(found, command)
		}
	}
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			words := strings.Fields(part)
			if len(words) > 0 && slices.Contains(tools, words[0]) &&
				(words[0] == "pytest" || strings.Contains(part, "test") || strings.Contains(part, "check")) {
				add(strings.TrimSpace(part))
			}
			continue
		}
		// Between other words: the runner, and the options and paths that follow it.
		for i := 0; i < len(part); i++ {
			for _, r := range runners {
				if strings.HasPrefix(part[i:], r.begins) && edge(part, i, len(r.begins)) {
					command := r.begins + arguments(part[i+len(r.begins):])
					if command != r.begins || !r.prose {
						add(command)
					}
					i += len(command) - 1
					break
				}
			}
		}
	}
	return found
}

// Words around a command by which it is only spoken of: what stands in the clause before it,
// and what follows it.
var (
	ordered  = []string{"run ", "execute ", "use ", "with ", "verify ", "check ", "跑", "运行", "执行", "用", "验证"}
	spokenOf = []string{"because", "since ", " why ", "if ", "when ", "output of", "came from", "因为", "由于", "为什么", "如果"}
	said     = []string{
		"hang", "fail", "is ", "was ", "are ", "does", "doesn", "did", "take", "print", "say", "report", "complain", "time", "crash", "show", "cannot", "can't", "never", "no longer", "keeps", "still",
		"失败", "报错", "挂", "卡", "超时", "输出", "显示", "不", "会", "很",
	}
)

// mentions reports whether the command that stands from at on is only spoken of: because go
// test hangs.
func mentions(text string, at, end int) bool {
	rest := strings.ToLower(strings.TrimLeft(text[end:], "` "))
	if slices.ContainsFunc(said, func(w string) bool { return strings.HasPrefix(rest, w) }) {
		return true
	}
	clause := clauseBefore(text, at)
	return slices.ContainsFunc(spokenOf, func(w string) bool {
		_, then, spoken := strings.Cut(clause, w)
		wanted := slices.ContainsFunc(ordered, func(o string) bool { return strings.Contains(then, o) }) // when all is done, run it
		return spoken && !wanted
	})
}

// edge reports whether the n bytes at i stand by themselves.
func edge(text string, i, n int) bool {
	word := func(c byte) bool {
		return c == '_' || c == '-' || c == '/' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return (i == 0 || !word(text[i-1]) && text[i-1] != '.') && (i+n == len(text) || !word(text[i+n]))
}

// arguments is the part of text that still belongs to the command before it.
func arguments(text string) string {
	var b strings.Builder
	whole := func() string { return strings.TrimRight(b.String(), " |&><") }
	for {
		rest := strings.TrimLeft(text, " ")
		if len(rest) == len(text) {
			return whole()
		}
		word := rest
		if end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }); end >= 0 {
			word = rest[:end]
		}
		cut := strings.TrimRight(word, `,;:!?)]}*"'`)
		if strings.HasSuffix(cut, "....") || !strings.HasSuffix(cut, "...") {
			cut = strings.TrimSuffix(cut, ".")
		}
		joined := strings.HasSuffix(b.String(), "|") || strings.HasSuffix(b.String(), "&") // to what follows
		if cut == "" || !strings.HasPrefix(cut, "-") && !strings.ContainsAny(cut, "/=|&><") && !joined {
			return whole()
		}
		b.WriteString(" " + cut)
		if cut != word {
			return whole()
		}
		text = rest[len(word):]
	}
}

// wishes are the ways to ask for a check.
var wishes = []string{
	"run the test", "run test", "run all test", "run your test", "run unit test", "run the unit test", "run the suite",
	"run the test suite", "rerun the test", "re-run the test", "execute the test", "tests pass", "test passes", "tests are green",
	"test your change", "test the change", "test it", "please verify", "and verify", "then verify", "verify it", "verify that",
	"verify the", "verify your", "verify by", "verify with", "verify afterwards", "run verification", "run the verification",
	"执行验证", "进行验证", "请验证", "并验证", "再验证", "后验证", "验证一下", "验证通过", "验证修改", "验证改动", "做验证", "跑验证", "自动验证", "需要验证",
	"跑测试", "跑一下测试", "跑一遍测试", "跑下测试", "运行测试", "执行测试", "跑单测", "跑单元测试", "运行单元测试", "测试一下", "测一下", "测试通过", "通过测试",
}

// notAWish are words that only look like a wish.
var notAWish = []string{"验证码"}

// negations, in the same clause before it, turn a wish around.
var (
	negations = []string{"don't", "dont", "do not", "don’t", "not ", "never", "without", "no need", "skip", "不", "别", "勿", "无需", "无须", "跳过", "没有必要"}
	affirming = []string{"forget", "忘", "不仅", "不但", "不只"}
)

// AskedFor reports whether a person asks, in English or Chinese, for the work
// to be checked, or names the command to check it with.
func AskedFor(text string) bool {
	if len(named(text)) > 0 {
		return true
	}
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, word := range notAWish {
		text = strings.ReplaceAll(text, word, "")
	}
	if strings.HasPrefix(text, "verify") && !strings.HasPrefix(text, "verify_") {
		return true
	}
	return slices.ContainsFunc(wishes, func(wish string) bool {
		return anywhere(text, wish, func(at int) bool { return !refuses(text, at) })
	})
}

// anywhere reports whether something holds at any place where a text has a word.
func anywhere(text, word string, holds func(at int) bool) bool {
	for from := 0; ; from += len(word) {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		if from += i; holds(from) {
			return true
		}
	}
}

// clauseLimit is how many bytes before a wish may turn it around.
const clauseLimit = 200

// refuses reports whether what stands at i is said not to be wanted.
func refuses(text string, i int) bool {
	clause := clauseBefore(text, i)
	has := func(word string) bool { return strings.Contains(clause, word) }
	return slices.ContainsFunc(negations, has) && !slices.ContainsFunc(affirming, has)
}

// clauseBefore is what stands in the same clause before i.
func clauseBefore(text string, i int) string {
	clause := strings.ToLower(text[max(0, i-clauseLimit):i])
	if j := strings.LastIndexAny(clause, "，。；、,.;!?！？\n"); j >= 0 {
		clause = clause[j:]
	}
	return clause
}

// declines are the negations by which somebody is told not to do something.
var declines = []string{"don't", "dont", "do not", "don’t", "without", "no need", "skip", "不要", "不用", "先不", "别", "勿", "无需", "无须", "跳过"}

// Declined reports whether a person says that nothing is to be tested: do not run pytest
// yet, 先不要跑测试.
func Declined(text string) bool {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	declined := func(what string, also ...string) bool {
		return anywhere(text, what, func(at int) bool {
			clause := clauseBefore(text, at)
			has := func(word string) bool { return strings.Contains(clause, word) }
			return slices.ContainsFunc(declines, has) && !slices.ContainsFunc(affirming, has) && (also == nil || slices.ContainsFunc(also, has))
		})
	}
	for _, r := range runners {
		if declined(r.begins, "run", "execut", "skip", "跑", "运行", "执行", "跳过") {
			return true
		}
	}
	return slices.ContainsFunc(wishes, func(wish string) bool {
		return !strings.Contains(wish, "pass") && !strings.Contains(wish, "通过") && !strings.Contains(wish, "green") && declined(wish)
	}) || declined("running the test") || declined("running test") || declined("running any test") || declined("run any test")
}
