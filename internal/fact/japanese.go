package fact

import (
	"cmp"
	"strings"
)

// japanese reads one sentence: 「XのAはVです」, 「AはV」, 「XではなくYを使う」.
func (s *scanner) japanese(t string) {
	for _, no := range [...]string{"か？", "ですか", "ますか", "例えば", "たとえば", "もし", "かもしれ", "でした", "だった", "以前", "昔", "予定", "たら", "ならば",
		"場合", "と思", "はず", "ないで", "ません", "ではない", "じゃない", "または", "あるいは", "仮に", "サンプル", "ダミー", "べき", "だろう", "でしょう"} {
		if strings.Contains(t, no) {
			return
		}
	}
	t = strings.TrimSpace(strings.Trim(t, "・●- "))
	if s.japaneseUse(t) {
		return
	}
	i := strings.Index(t, "は")
	if i <= 0 {
		return
	}
	left, right := strings.TrimSpace(t[:i]), strings.TrimSpace(t[i+len("は"):])
	right = strings.TrimPrefix(strings.TrimPrefix(right, "、"), "現在")
	if strings.Contains(right, "は") || strings.Contains(right, "、") || strings.Contains(right, "と") && !strings.Contains(right, "ひと") {
		return // a second topic, a list or a clause
	}
	place := ""
	for _, p := range [...]struct{ jp, en string }{{"ステージング", "staging"}, {"本番", "production"}, {"開発環境", "dev"}, {"テスト環境", "test"}, {"ローカル", "local"}} {
		if strings.Contains(left, p.jp) {
			place = p.en
			for _, tail := range [...]string{"環境の", "の", "環境では", "では", "環境", ""} {
				if rest, found := strings.CutPrefix(left, p.jp+tail); found {
					left = rest
					break
				}
			}
		}
	}
	subject, name, kind := "", "", kindNone
	if j := strings.LastIndex(left, "の"); j >= 0 {
		name, kind = japaneseAttribute(strings.TrimSpace(left[j+len("の"):]))
		subject = left[:j]
	}
	if kind == kindNone {
		subject = ""
		if name, kind = japaneseAttribute(left); kind == kindNone {
			subject = left
		}
	}
	value := ending(right)
	if kind == kindNone {
		switch {
		case strings.HasSuffix(value, "番ポート") || strings.HasPrefix(value, "ポート"):
			name, kind = "port", kindPort
			value = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(value, "番ポート"), "ポート"))
		case weekday([]byte(value)) != "":
			name, kind = "day", kindTime
		default:
			return
		}
	}
	value = strings.TrimSuffix(value, "番")
	low := []byte(normalValue(value))
	if kind != kindPerson && !fits(kind, low, len(strings.Fields(value)), true) || value == "" || len(value) > 60 || japaneseNothing(value) {
		return
	}
	subject = s.japaneseSubject(subject)
	if subject == "" && category(low) == name {
		subject = "we" // 「データベースはPostgresです」
	}
	if place != "" && subject == "" {
		subject = cmp.Or(s.heading, place)
	}
	s.add(subject, name, value, place)
}

// ending takes off what ends a sentence: です, に変更しました, …
func ending(v string) string {
	v = strings.TrimSpace(v)
	for {
		cut := false
		for _, e := range [...]string{"に変更しました", "に変わりました", "に変更になりました", "に設定されています", "に設定する", "になりました", "になります", "となります",
			"で動いています", "で待ち受けます", "で動く", "で待ち受ける", "を使います", "を使用します", "であります", "である", "です", "だ", "さんです", "さん", "に固定", "に行います", "に行う", "。"} {
			if rest, found := strings.CutSuffix(v, e); found && rest != "" {
				v, cut = strings.TrimSpace(rest), true
			}
		}
		if !cut {
			return strings.Trim(v, "「」『』`\" ")
		}
	}
}

func japaneseNothing(v string) bool {
	for _, w := range [...]string{"未定", "不明", "なし", "空", "同じ", "必要", "必須", "重要", "正しい", "間違い", "以下", "次", "これ", "それ", "自由", "使用中", "任意"} {
		if strings.HasPrefix(v, w) {
			return true
		}
	}
	return strings.ContainsAny(v, "。、")
}

func (s *scanner) japaneseSubject(t string) string {
	t = strings.TrimSpace(strings.Trim(t, "「」『』`\" "))
	for _, p := range [...]string{"この", "その", "あの", "私たちの", "我々の", "弊社の", "うちの"} {
		t = strings.TrimPrefix(t, p)
	}
	switch t {
	case "これ", "それ", "私", "彼", "彼女", "ここ", "プロジェクト":
		return ""
	case "デプロイ":
		return "deploy"
	case "リリース":
		return "release"
	}
	if strings.ContainsAny(t, "、。") || len(t) > 60 {
		return ""
	}
	if !s.words.split(t) {
		return ""
	}
	return s.words.subject(0, s.words.n)
}

func japaneseAttribute(w string) (string, kind) {
	switch w {
	case "ポート", "ポート番号":
		return "port", kindPort
	case "バージョン", "版":
		return "version", kindVersion
	case "担当者", "担当", "オーナー", "責任者", "所有者", "管理者":
		return "owner", kindPerson
	case "タイムアウト", "タイムアウト値":
		return "timeout", kindNumber
	case "上限", "制限", "最大値":
		return "limit", kindNumber
	case "間隔":
		return "interval", kindNumber
	case "保存期間", "保持期間":
		return "retention", kindNumber
	case "予算":
		return "budget", kindNumber
	case "URL", "url", "エンドポイント":
		return "url", kindURL
	case "ホスト", "ホスト名", "ドメイン", "サーバー":
		return "host", kindURL
	case "メール", "メールアドレス":
		return "email", kindURL
	case "リージョン":
		return "region", kindWord
	case "データベース", "DB":
		return "database", kindWord
	case "ブランチ":
		return "branch", kindWord
	case "デフォルトブランチ", "既定のブランチ":
		return "default branch", kindWord
	case "言語":
		return "language", kindWord
	case "パス":
		return "path", kindWord
	case "ライセンス":
		return "license", kindWord
	case "締め切り", "締切", "期限":
		return "deadline", kindTime
	case "誕生日":
		return "birthday", kindTime
	}
	return "", kindNone
}

// generic says that a topic names a kind of tool and no thing that has one.
func generic(topic string) bool {
	switch topic {
	case "パッケージマネージャ", "パッケージマネージャー", "インデント", "字下げ", "データベース", "db", "テストランナー", "ビルドツール":
		return true
	}
	return false
}

// japaneseUse reads 「npmではなくpnpmを使う」 and 「パッケージマネージャはpnpmを使う」.
func (s *scanner) japaneseUse(t string) bool {
	i := strings.Index(t, "を使")
	if i < 0 {
		if i = strings.Index(t, "を利用"); i < 0 {
			return false
		}
	}
	head := strings.TrimSpace(t[:i])
	not := ""
	for _, n := range [...]string{"ではなく", "じゃなく", "の代わりに"} {
		if a, b, found := strings.Cut(head, n); found {
			not, head = strings.TrimSpace(a), strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(b, "て"), "、"))
			break
		}
	}
	subject := "we"
	if a, b, found := strings.Cut(head, "は"); found {
		if sub := s.japaneseSubject(a); sub != "" && !generic(sub) && !strings.HasPrefix(sub, "私") {
			subject = sub
		}
		head = strings.TrimSpace(strings.Trim(b, "、 "))
	}
	if _, b, found := strings.Cut(not, "は"); found {
		not = strings.TrimSpace(b)
	}
	value := strings.Trim(head, "「」`\" ")
	if value == "" || strings.ContainsAny(value, " 、と") || len(value) > 40 {
		return true
	}
	low := []byte(strings.ToLower(value))
	if c := category(low); c != "" {
		s.add(subject, c, value, "")
		return true
	}
	if not != "" && len(not) <= 40 && !strings.ContainsAny(not, " 、") {
		a, b := strings.ToLower(value), strings.ToLower(not)
		if b < a {
			a, b = b, a
		}
		s.add(subject, a+" or "+b, value, "")
	}
	return true
}
