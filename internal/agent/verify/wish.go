package verify

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// runner is the beginning of a test command in the middle of a sentence.
// A bare runner that is also plain English does not count as a command.
type runner struct {
	begins string
	prose  bool
}

var runners = []runner{
	{"go test", true}, {"pytest", true}, {"pnpm test", false}, {"npm test", false}, {"yarn test", false},
	{"cargo test", false}, {"mvn -q test", false}, {"mvn test", false}, {"./gradlew test", false}, {"gradle test", false},
}

// tools begin a test command in quotes, where every word counts.
var tools = []string{
	"go", "pytest", "python", "python3", "tox", "npm", "pnpm", "yarn", "npx", "bun", "deno", "cargo", "mvn", "gradle", "./gradlew",
	"make", "just", "task", "ctest", "bazel", "dotnet", "rake", "bundle", "mix",
}

// named lists the test commands that the user wants to run, in order.
func named(text string) []string {
	var found []string
	from := 0 // the earliest index of the next command
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
		// In prose: the runner, and the options and paths after it.
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

// Words that show that a command is only mentioned: words in the clause before it, and words after it.
var (
	ordered  = []string{"run ", "execute ", "use ", "with ", "verify ", "check ", "跑", "运行", "执行", "用", "验证"}
	spokenOf = []string{"because", "since ", " why ", "if ", "when ", "output of", "came from", "因为", "由于", "为什么", "如果"}
	said     = []string{
		"hang", "fail", "is ", "was ", "are ", "does", "doesn", "did", "take", "print", "say", "report", "complain", "time", "crash", "show", "cannot", "can't", "never", "no longer", "keeps", "still",
		"失败", "报错", "挂", "卡", "超时", "输出", "显示", "不", "会", "很",
	}
)

// mentions reports whether the command from at to end is only mentioned: because go test hangs.
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

// edge reports whether the n bytes at i are separate words.
func edge(text string, i, n int) bool {
	word := func(c byte) bool {
		return c == '_' || c == '-' || c == '/' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
	}
	return (i == 0 || !word(text[i-1]) && text[i-1] != '.') && (i+n == len(text) || !word(text[i+n]))
}

// arguments returns the beginning of text that still belongs to the command before it.
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
		joined := strings.HasSuffix(b.String(), "|") || strings.HasSuffix(b.String(), "&") // to the next word
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

// wishes are phrases that ask for a check.
var wishes = []string{
	"run the test", "run test", "run all test", "run your test", "run unit test", "run the unit test", "run the suite",
	"run the test suite", "rerun the test", "re-run the test", "execute the test", "tests pass", "test passes", "tests are green",
	"test your change", "test the change", "test it", "please verify", "and verify", "then verify", "verify it", "verify that",
	"verify the", "verify your", "verify by", "verify with", "verify afterwards", "run verification", "run the verification",
	"执行验证", "进行验证", "请验证", "并验证", "再验证", "后验证", "验证一下", "验证通过", "验证修改", "验证改动", "做验证", "跑验证", "自动验证", "需要验证",
	"跑测试", "跑一下测试", "跑一遍测试", "跑下测试", "运行测试", "执行测试", "跑单测", "跑单元测试", "运行单元测试", "测试一下", "测一下", "测试通过", "通过测试",
}

// notAWish lists words that only look like a request.
var notAWish = []string{"验证码"}

// negations before a request in the same clause reverse it.
var (
	negations = []string{"don't", "dont", "do not", "don’t", "not ", "never", "without", "no need", "skip", "不", "别", "勿", "无需", "无须", "跳过", "没有必要"}
	affirming = []string{"forget", "忘", "不仅", "不但", "不只"}
)

// AskedFor reports whether the user asks in English or Chinese for a check, or names a command for it.
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

// anywhere reports whether holds is true at any occurrence of word in text.
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

// clauseLimit limits how many bytes before a request can reverse it.
const clauseLimit = 200

// refuses reports whether the clause before i rejects what is at i.
func refuses(text string, i int) bool {
	clause := clauseBefore(text, i)
	has := func(word string) bool { return strings.Contains(clause, word) }
	return slices.ContainsFunc(negations, has) && !slices.ContainsFunc(affirming, has)
}

// clauseBefore returns the part of the clause before i.
func clauseBefore(text string, i int) string {
	clause := strings.ToLower(text[max(0, i-clauseLimit):i])
	if j := strings.LastIndexAny(clause, "，。；、,.;!?！？\n"); j >= 0 {
		clause = clause[j:]
	}
	return clause
}

// declines are the negations in instructions not to do something.
var declines = []string{"don't", "dont", "do not", "don’t", "without", "no need", "skip", "不要", "不用", "先不", "别", "勿", "无需", "无须", "跳过"}

// Declined reports whether the user says not to run tests: do not run pytest yet, 先不要跑测试.
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
