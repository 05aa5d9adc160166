package suspect

// What a vendor's key consists of after its prefix.
const (
	hexDigits = 'h' // small ones
	letters   = 'a' // letters and digits
	wordy     = 'w' // and _ and -
	dotted    = 't' // and dots
	base64s   = 'b' // and + / = %
)

// vendor is a kind of key that tells by how it begins whose it is: the prefix, in lower
// case and as it is written, and from how many to how many characters of a kind follow. One
// without a prefix has code of its own; see marked.
type vendor struct {
	word, prefix string
	of           byte
	least, most  int
}

var vendors = [...]vendor{
	// Marks that stand in a key, or after it.
	{word: ".g"}, {word: ".h"}, {word: ".x"}, {word: ".y"}, {word: "-us"}, {word: "jqqj99"}, {word: ":aa"}, {word: "pat"},
	{"dckr_pat_", "dckr_pat_", wordy, 27, 36}, {"dckr_oat_", "dckr_oat_", wordy, 27, 36},
	{"whsec_", "whsec_", base64s, 32, 64},
	{"nvapi-", "nvapi-", wordy, 60, 80},
	{"lsv2_pt_", "lsv2_pt_", wordy, 32, 50}, {"lsv2_sk_", "lsv2_sk_", wordy, 32, 50},
	{"sk-", "sk-", hexDigits, 32, 32}, {"sk-", "sk-", letters, 48, 48},
	{"sk-proj-", "sk-proj-", wordy, 40, 200}, {"sk-svcacct-", "sk-svcacct-", wordy, 40, 200}, {"sk-admin-", "sk-admin-", wordy, 40, 200},
	{"sk-ws-01-", "sk-ws-01-", wordy, 60, 120},
	{"sk_", "sk_", hexDigits, 48, 48}, {"key_", "key_", hexDigits, 64, 64}, {"fc-", "fc-", hexDigits, 32, 32},
	{"nfp_", "nfp_", letters, 36, 40},
	{"squ_", "squ_", hexDigits, 40, 40}, {"sqp_", "sqp_", hexDigits, 40, 40}, {"sqa_", "sqa_", hexDigits, 40, 40},
	{"dp.st.", "dp.st.", dotted, 40, 90}, {"dp.ct.", "dp.ct.", dotted, 40, 90}, {"dp.sa.", "dp.sa.", dotted, 40, 90},
	{"re_", "re_", wordy, 33, 33},
	{"tvly-", "tvly-", wordy, 32, 60},
	{"pcsk_", "pcsk_", wordy, 50, 90},
	{"phx_", "phx_", letters, 40, 52},
	{"bkua_", "bkua_", hexDigits, 40, 40},
	{"ccipat_", "CCIPAT_", wordy, 50, 80},
	{"sb_secret_", "sb_secret_", wordy, 28, 60},
	{"1//0", "1//0", wordy, 40, 200},
	{"csk-", "csk-", letters, 48, 48},
	{"jina_", "jina_", letters, 56, 70},
	{"e2b_", "e2b_", hexDigits, 40, 40},
	{"napi_", "napi_", letters, 64, 64}, {"npg_", "npg_", letters, 12, 20},
	{"rnd_", "rnd_", letters, 32, 32},
	{"ddp_", "ddp_", letters, 36, 36}, {"cfut_", "cfut_", letters, 40, 40}, {"vcp_", "vcp_", letters, 56, 56},
	{"sq0csp-", "sq0csp-", wordy, 43, 43}, {"cfpat-", "CFPAT-", wordy, 43, 43},
	{"atctt3", "ATCTT3", dotted, 100, 300},
	{"mdb_sa_sk_", "mdb_sa_sk_", wordy, 40, 60},
	{"tr_prod_", "tr_prod_", letters, 20, 40}, {"tr_dev_", "tr_dev_", letters, 20, 40},
	{"signkey-prod-", "signkey-prod-", hexDigits, 32, 64}, {"signkey-test-", "signkey-test-", hexDigits, 32, 64},
	{"access-production-", "access-production-", wordy, 36, 36}, {"access-sandbox-", "access-sandbox-", wordy, 36, 36},
	{"oy2", "oy2", letters, 43, 43},
	{"secret_", "secret_", letters, 43, 43},
	{"sk.eyj", "sk.eyJ", dotted, 60, 200},
	{"fw_", "fw_", letters, 24, 24},
	{"sgph_", "sgph_", wordy, 45, 60},
	{"akid", "AKID", letters, 32, 32}, {"aqvn", "AQVN", wordy, 35, 40}, {"flwseck-", "FLWSECK-", hexDigits, 32, 32}, {"api_live.", "api_live.", dotted, 30, 60},
	{"sdk-", "sdk-", wordy, 36, 36}, {"xoxc-", "xoxc-", wordy, 40, 120},
	// Ways to a key.
	{word: "/api/webhooks/"}, {word: "api.telegram.org/bot"}, {word: "-signature="}, {word: "code=4/0"},
}

// VendorWords are the keywords of [Vendor], in lower case, each once.
func VendorWords() []string {
	var out []string
	for i, v := range vendors {
		if i == 0 || vendors[i-1].word != v.word {
			out = append(out, v.word)
		}
	}
	return out
}

// Vendor finds a vendor's key that has the keyword at [start,end) and yields its place. Like
// [Assigned] it is a whole rule and no filter.
func Vendor(s string, start, end int, yield func(from, to int)) {
	word := s[start:end]
	for i := range vendors {
		v := &vendors[i]
		if !sameFold(word, v.word) {
			continue
		}
		if v.prefix == "" {
			marked(s, start, end, v.word, yield)
			return
		}
		if word != v.prefix || start > 0 && (alnum(s[start-1]) || s[start-1] == '_' || s[start-1] == '-') {
			continue
		}
		to := run(s, end, v.of)
		if n := to - end; n >= v.least && n <= v.most && mixed(s[end:to]) {
			yield(start, to)
			return
		}
	}
}

// run is where characters of a kind end that begin at i.
func run(s string, i int, of byte) int {
	from := i
	for i < len(s) && of != 0 {
		c := s[i]
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || of != hexDigits && c >= 'A' && c <= 'Z'
		switch of {
		case hexDigits:
			ok = ok && c <= 'f'
		case wordy:
			ok = ok || c == '_' || c == '-'
		case dotted:
			ok = ok || c == '_' || c == '-' || c == '.'
		case base64s:
			ok = ok || c == '+' || c == '/' || c == '=' || c == '%'
		}
		if !ok {
			break
		}
		i++
	}
	for i > from && s[i-1] == '.' { // of the sentence
		i--
	}
	if i < len(s) && (alnum(s[i]) || s[i] == '_') {
		return from
	}
	return i
}

// mixed reports whether a text has digits and letters, as names seldom have them.
func mixed(text string) bool {
	t := traitsOf(text)
	return t.distinct > 6 && (t.digits > 1 && t.lower+t.upper > 1 || t.digits == 1 && t.lower > 1 && t.upper > 1)
}

// marked finds a key by what stands in it, or before it in a URL.
func marked(s string, start, end int, word string, yield func(from, to int)) {
	back := func(of byte) int { // where the characters of a kind before start begin
		i := start
		for i > 0 && run(s[:i], i-1, of) == i {
			i--
		}
		return i
	}
	switch word {
	case ".g", ".h", ".x", ".y": // Discord's: the bot's number, a time and a signature
		if end+5 >= len(s) || s[end+5] != '.' || run(s, end+6, wordy)-end-6 < 27 || run(s, end+6, wordy)-end-6 > 45 || start < 23 {
			return
		}
		if from := back(wordy); start-from >= 23 && start-from <= 30 && (s[from] == 'M' || s[from] == 'N' || s[from] == 'O') && mixed(s[from:start]) {
			yield(from, run(s, end+6, wordy))
		}
	case "-us": // Mailchimp's: the data centre
		to := end
		for to < len(s) && to-end < 2 && s[to] >= '0' && s[to] <= '9' {
			to++
		}
		if to == end || to < len(s) && wordByte(s[to]) || start < 32 {
			return
		}
		if from := back(hexDigits); start-from == 32 {
			yield(from, to)
		}
	case "jqqj99": // Azure's
		if from, to := back(letters), run(s, end, letters); start-from >= 40 && to-from <= 100 && mixed(s[from:to]) {
			yield(from, to)
		}
	case ":aa": // Telegram's: the bot's number, and a key of 35 characters
		from := start
		for from > 0 && start-from < 11 && s[from-1] >= '0' && s[from-1] <= '9' {
			from--
		}
		if to := run(s, start+1, wordy); start-from >= 8 && start-from <= 10 && to-start-1 == 35 && s[start+1:end] == "AA" {
			yield(from, to)
		}
	case "pat": // Airtable's
		if end+15 < len(s) && s[end+14] == '.' && run(s, end, dotted)-end == 14+1+64 && run(s, end+15, hexDigits)-end == 14+1+64 && (start == 0 || !wordByte(s[start-1])) {
			yield(start, end+14+1+64)
		}
	case "/api/webhooks/", "api.telegram.org/bot":
		i := end
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		if i == end || i == len(s) || s[i] != '/' && s[i] != ':' {
			return
		}
		if to := run(s, i+1, wordy); to-i-1 >= 20 {
			yield(i+1, to)
		}
	case "-signature=":
		if to := run(s, end, letters); to-end >= 20 && start > 4 && (hasPrefixFold(s[start-5:], "x-amz") || start > 5 && hasPrefixFold(s[start-6:], "x-goog")) {
			yield(end, to)
		}
	case "code=4/0":
		if to := run(s, end, wordy); to-end >= 20 {
			yield(end-len("4/0"), to)
		}
	}
}
