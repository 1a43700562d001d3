"""Short and wordy passwords, which only an unmistakable label or sentence gives away.

`labels` finds values that look like secrets behind any name of one. Here the name leaves no doubt,
so that the value may be `sunshine` or `4821`; in exchange it must stand where only a value can.
Below are forms that only Chinese, and in part Korean and Russian, notes have: a short label, letters
of two scripts, counted signs, agreed words.
"""

import re
import string
from collections.abc import Sequence

from creonowd.redaction.labels import password_of_pair, trim_bare
from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import (
    FOREIGN_NAMES,
    HAN_LABELS,
    NO_SECRET_TAILS,
    NO_SECRET_WORDS,
    PAIR_NAMES,
    Strength,
    strength_of,
)
from creonowd.redaction.shape import (
    BLANK_VALUES,
    COMMON_VALUES,
    FUNCTION_WORDS,
    SENTENCE_WORDS,
    STORY_WORDS,
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_blank,
    is_common_phrase,
    is_common_value,
    is_latin,
    is_numbered_word,
    is_plain_value,
    is_remark_han,
    is_stand_in,
    names_a_secret,
    oddity,
    unaccented,
    word_set,
)

LONGEST_LINE_HEAD = 120
WORDS_OF_A_CHAIN = 4
FEWEST_WORDS_OF_SENTENCE = 5
LONGEST_USER = 24

ENGLISH_LABELS = (
    "pass", "pwd", *FOREIGN_NAMES, "p/w", "pw:", "pw：", "pw=", "pw =", "pw is ", "pw ", "pw\t",
    "psk=", "psk =", "psk:", 'psk "', 'pw":', "pw':", 'pw" :', 'pw" =', "pw' =", "secret=", "secret =", "secret:", 'secret"', "secret'",
    "memorable word",
)  # fmt: skip
_UNMISTAKABLE = (*FOREIGN_NAMES, "memorable word")
_SPACE = r"[ \t\u3000]"
_CLOSE = r"[*_`\"”」』】\\\]'’]{0,6}+"
_ASIDE = rf"(?:[ \t]?[(（][^()（）\n]{{0,24}}[)）]|[ \t]\[[^\[\]\n]{{0,24}}\]|)+{_CLOSE}"
_ASSIGN = (
    rf"{_SPACE}{{0,16}}(?:={{1,3}}>?|:=?(?!//)|：|＝|->|→|\|(?=[ ]))(?:\*\*|__|){_SPACE}{{0,16}}"
)
_CLAUSE = (
    r"(?P<clause>[ \t](?u:for|of|to|on|in|at|fürs?|zum|zur|vom|von|des|der|im|am|beim|do|da|del?|della|di|dell['’]\w{1,20}|du|des|pour|sur"
    r"|para|en|no|na|per|van|voor|от|для|на|к|для)(?:[ \t](?u:[\w@.'’-]){1,40}){1,4}?"
    r"|(?P<qualifier>(?:[ \t](?u:[^\W\d_][\w-]{1,15})){1,2}?(?=[ ]?(?:[:=：→]|->))))?"
)
_IS = (
    r"(?:['’]s(?:[ \t](?:now|still))?|[ \t](?:ist|is|was|war|lautet|est|es|eh|(?:ahora|agora|ora|adesso) (?:es|é|è)|é|è|is nu|är|er|to|это|теперь"
    r"|has been|used to be)(?:[ \t](?:now|still|jetzt|nun|maintenant|désormais|ahora|agora|ora|adesso|set to|changed to|reset to))?"
    r"|[ \t](?:re)?set to|[ \t]changed to|,?[ \t](?:just |please |then )?(?:type|enter|input|use|try|put in))"
    r"[ \t]?[:：]?[ \t]{0,4}"
)
_HAN_IS = (
    r"[我你他她]?(?:(?:就?是|[:：])?(?:全?[大小]写的?)[ ]?|请?按|就是|还是|還是|是|係|(?:请|請)?(?:输入|輸入|填写|填|用|输|打)|(?:已经?|被)?(?:重置|更新|修改|变更|變更|更改|设置|設置|設定|[设設改换換变變])"
    r"(?:成了?|为了?|為)|叫做?|写的是|为|爲|為|は|が|を|는|은|가|이|를|을)[ \t]{0,2}[:：]?[ \t]{0,2}"
)
_VALUE = (
    r"(?!(?i:pass|pwd|secret|token|key)[a-z._-]{0,16}+[=:])"
    r"(?:(?P<opening>\\?[\"'`“‘「『《])(?P<quoted>[^\s\"'`“”‘’「」『』《》)，。、：\\][^\n\"'`“”‘’「」『』《》\\]{0,63})"
    r"\\?[\"'`”’」』》]|(?P<bare>(?:[!#-&(-~\u00c0-\u024f]|(?<=[A-Za-z]{2})(?<![^A-Za-z][rRbB][bBrR])'(?=[A-Za-z]{2})){3,64}+))"
)
_WORDS_AFTER = re.compile(
    r"((?:,?[ ][A-Za-z0-9\u00c0-\u024f][A-Za-z0-9'’.\u00c0-\u024f]{0,19}){1,7})[ \t]*(?=\r?\n|\Z|[)）])"
)
_WORDS_TO_FULL_STOP = re.compile(r"((?:[ ][a-z][a-z'’]{0,19}){3,7})\.(?=\s|\Z)")
_ENDS = re.compile(
    r"[\"'`*]{0,3}(?:[ \t]{0,4}(?:\r?\n|\Z)|[ \t]{2}|[,，。；;)）】」』”|&<、]|[.!](?:\s|\Z)"
    r"|[ \t]+(?:[#/(（<|;]|//|[A-Za-z][\w.-]{0,47}[:：=]|https?:|[^\x00-\x7f])|[^\x00-\x7f])"
)
_COUNTS = re.compile(
    r"[ ]?(?:[-–~至到][ ]?\d|[位个個字次元年月日号號章层層分秒天%]|文字|桁|자리|자\b|characters|chars|digits|letters"
    r"|times|attempts|tries|minutes|days|bits?\b)"
)
_DOUBT = re.compile(r"[\"'”’」』]?[ ]?(?:吗|么|嗎|[?？]|か[？?。]|인가|이냐)")
_LABEL_ALONE = re.compile(r"[\s#*>\-`\"'{\[(\w.,$]{0,60}\Z")
_CALL = re.compile(
    r"\w\(|\b(?:def|const|let|var|return|if|self|function|func|fn|lambda|constructor|init)\b"
)
_CONNECTION = re.compile(
    r"(?:[\"']|;|\A[ \t]*)(?:[^\"'\n]{0,80}[ ;])?(?:host|server|dbname|database|user|uid|data source)=[^\"'\n]{0,60}\Z",
    re.IGNORECASE,
)
_NEXT_SETTING = re.compile(r";[A-Za-z][A-Za-z ]{1,24}=")
_NEXT_FLAG = re.compile(
    r"[\"']?(?:[ \t]+(?:-|https?:|ftp:|ssh:|\.{0,2}/|[\w-]+\.[a-z]{2,4}(?:\s|\Z))|[ \t]*(?:[\r\n]|\Z))"
)
_PLAIN_WORD_BEFORE = re.compile(r"[a-z] \Z")
_NETWORK_BEFORE_PASS = re.compile(
    r"(?<![\w-])(?:wi-?fi|wlan|guests?|gäste|gast|invités?|hotspot|router|network|netz|login)[ _-](?:\w{2,8}[ ])?\Z",
    re.IGNORECASE,
)
_LINE_OF_ACCOUNT = re.compile(
    r"[\s>*•·+-]{0,8}(?:user(?:[ _-]?name)?|login|account|e-?mail|network(?: name)?|ssid|wi-?fi|wlan(?:-name)?|netz(?:werk)?|(?:web)?site|url|benutzer(?:name)?|konto|réseau|identifiant|utilisateur|compte|usuario|cuenta|red|correo|usuário|conta|rede|utente|rete"
    r"|gebruiker(?:snaam)?|netwerk|użytkownik|sieć|логин|пользователь|сеть|(?:登[录錄陆入])?[账帐帳賬][号號户戶]|用户名?|用戶名?|登录名|网址|網址|网络名?|無線名|无线名?|邮箱|ユーザー(?:名|id)?|アカウント|ネットワーク名?|아이디|계정|네트워크)"
    r"(?:\*\*)?[ ]?[:：=→][ ]?\S",
    re.IGNORECASE,
)
_DASHES = frozenset("-–—")
_DOTTED_VALUE = re.compile(
    r"(?=.*(?:[A-Z_-]|[0-9][0-9]|[0-9]\Z))[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+\Z"
)
_SETS_VARIABLE = re.compile(r"(?:\A|\s)(?:set|setx|ENV|ARG|export)[ \t]+[A-Z_]{0,40}\Z")
_HAN_AND_NUMBER = re.compile(
    r"[^\W\d_a-zA-Z]{1,12}[0-9]{3,12}[^\W\d_a-zA-Z年月日章节号]{0,4}\Z|[0-9]{3,12}[^\W\d_a-zA-Z年月日章节号]{1,12}\Z"
)
_HAN_COMPOUNDS = (
    "解压", "解壓", "压缩包", "壓縮檔", "访问", "訪問", "主", "恢复", "wifi", "WiFi", "Wi-Fi", "WIFI", "无线", "無線", "私钥", "文档", "打开", "网盘",
    "后台", "登录", "开机", "锁屏", "相册", "文件", "压缩", "연결", "압축 ", "압축파일 ", "파일 ", "와이파이 ",
)  # fmt: skip
"""What stands before 密码 in labels of real systems."""
_HAN_BLANK = re.compile(
    r"[见看问找向请請無无未没沒不同略已忘]|如[下上]|另行|私信|评论|評論|群里|群公告|后缀|为空|默认|初始|错误|錯誤|重置|管理|设置|修改|提示|保密|公众号|关注|回复|正确|本人|生日|和.*一样|없|동일|참조|문의|공지|댓글|쪽지|아래|위와|변경|분실"
)
_HAN_THING = re.compile(
    r"(?![^:：\n]*(?:[主配]角|[女男]主|反派|小说|大纲|剧情|情节|场景|[章节回卷]|[他她它谁]))"
    r"[\s#>*+•·-]{0,8}[\w（）()'’ ]{0,14}?(?:软件|軟體|程序|[Aa][Pp][Pp]|[Ww][Ii]-?[Ff][Ii]|无线网?|無線網?|路由器?|邮箱|郵箱|信箱|[云雲网網][盘盤]|硬[盘碟]|硬碟|U[盘碟]|隨身碟|备份|備份|电脑|電腦|笔记本|筆電|台式机|手机|手機|平板|账号|帐号|帳號|账户|帳戶|压缩包|壓縮檔|文档|文件夹?|相册|后台|後台|博客|论坛|服务器|伺服器|钥匙串|密钥库|加密盘|云笔记|记事本)"
    r"的?(?:登[录錄]|开机|開機|锁屏|解锁)?|[\s#>*+•·-]{0,8}(?:登[录錄]|后台|開機|开机|锁屏|管理员)"
)
"""What of today a password opens, as a note begins with it."""
_ABOUT_PASSWORDS = re.compile(
    r"[他她它谁誰]|配角|[章节回卷]|谜|代表|暗示|[藏写寫记記贴貼存设設输輸试試锁鎖位字数數换換由]|[改用]了|改成|改变|变成|发现|真相|身份|应该|长度|每[^天]|猜|破|解[开開]|打开|打開|来自|取自|对应|拼音|倒着|姓名|名称|日期|年份|号码|车牌|身份证|一[行串句组]|陌生|关于|规则|作废|过期|失效|泄露|被|让|说|問"
    r"|的[^的]{0,3}\Z"
)
"""Words of what is said about a password, in a note or an outline."""
_HOMELY = re.compile(
    r"[我咱俺]|[猫狗鱼鸟兔鸭鹅猪]|[吃喝]|爱睡|最爱|今天也|天天|周[一二三四五六日末]|火锅|饺子|西瓜|豆腐|粽子|天气|太阳|月亮|下雨|开花"
)
_DOES_NOT = re.compile(
    "[不没沒](?=[想爱愛吃怕喝睡下上如])|(?<=[粉面麵油薯])条|\\A请(?:把|将|随手|记得)?(?=[脱换关擦洗喝吃拖随摆放])"
)
"""Letters of remarks that here belong to what somebody eats or does, or asks of a guest."""
_OF_TITLES = re.compile(
    "[迷谜凶杀殺案魂劫恋戀战戰局救传傳录錄密史爱恨仇罪罚命运死]|人生|时代|時代|江湖|世界|归来|风云|背后|背後"
)
"""Of what titles are made that stand behind 密码："""
_BEHIND_ACCOUNT = re.compile(
    r"[\s>*•·+-]{0,8}[^\n:：]{0,12}(?:[账帐帳賬][号號户戶]|用户名?|用戶名?|登录名|邮箱|网络|SSID|ssid|ID|id)[ ]?[:：]?[ ]?[!-~\u4e00-\u9fff]{2,40}(?:[，,；;、/ 　][ ]{0,4})"
)
_FOREIGN_HEAD = re.compile(
    r"[\s>*•·+-]{0,8}(?:(?iu:wi-?fi|wlan|ゲスト|無線|ログイン|ルーター|와이파이|로그인|게스트|공유기|вайфай)の?[ ]?)?"
)
_FOREIGN_REMARK = re.compile(
    r"(?:です|ます|した|ない|なし|くだ?さい|こと|もの|ため|だけ|まで|から|こちら|とき|の[鍵謎]|れる|する|せる|ば|不可|言葉|単語|合図|自由)\Z"
    r"|文字|英[数字]|半角|全角|数字|記号|大小|管理|担当|本人|各自|誕生|生年|名前|氏名|番号|ヒント|主人公|ヒロイン|伏線|秘密|ひみつ|謎|物語|小説|[章話]|問い?合|メール|電話|社員|学籍|封筒|メモ|用紙|裏|手帳|初[回期]|設定|変更|確認|参照|連絡|必須|任意|以[上下内前]|通り|とおり|入力|発行|郵送|通知|記載|共有|保管|不要|同じ|未|別途|非表示|忘|聞|訊|知|教|パス|ログイン|受付|配布|のちほど|後ほど|あとで|いつもの|わから|口頭|自動|生成|彼女?"
    r"|다\Z|기\Z|매[주월일년]|약속|만의|직원|점장|(?<!주세)요\Z|[함음임됨뀜]\Z|없|동일|참조|문의|변경|분실|아래|위와|필수|선택|설정|관리|본인|생[일년]|이름|전달|공유|확인|안내|비밀|주인공|복선|소설|이야기|[장화]의|자리|이상|이하|영문|숫자|특수|글자|문자|조합|입력|표시|따로|별도|같은|같음|요청|발급|자동|생성|메일|전화|번호|[ ]단어|열쇠|모름|모르|담당|프런트|뒷면|메모"
    r"|(?iu:\b(?:спрос\w*|спроси\w*|узна\w*|см|смотр\w*|менее|более|символ\w*|букв\w*|цифр\w*|тот|та|то|же|как|что|кто|где|когда|который\w*|прежн\w*|стар\w*|нов(?:ый|ая|ого)|будет|выдан\w*|выда\w*|высла\w*|отправ\w*|пришл\w*|пришлю|получ\w*|обязат\w*|требу\w*|неверн\w*|неправ\w*|забыт\w*|забыл\w*|измен\w*|смен\w*|сброш\w*|скрыт\w*|пуст\w*|нет|не|никто|никому|никогда|потом|позже|завтра|лично|устно|почт\w*|письм\w*|админ\w*|слов\w*|ключ\w*|тайн\w*|секрет\w*|пароль|сюжет\w*|глав\w*|роман\w*|геро\w*|сцен\w*|истори\w*|записан\w*|хран\w*|лежит|висит|наклеен|указан\w*|знает|знают|знал\w*|он|она|они|его|её|ее|их|рожден\w*|имя|фамили\w*|длин\w*|состоит|генер\w*|автомат\w*|умолчан\w*|по|для|чтобы|это|есть|был\w*)\b)"
)
"""Words of what is said about a password in Japanese, Korean or Russian, rather than of one."""
_LENGTHS_OF_VERSES = frozenset((7, 10, 14))
_LENGTHS_OF_SHORT_VERSES = frozenset((5, 8))
_NO_VERSE = re.compile(
    r"[的了着吗呢吧啊们这那哪您咱俺我他她它谁谜你位字码碼号號组填符输設设改换換猜破贴貼写寫记記抄藏留给跟按须需勿请請由把被让已并第章节回卷页条块串或]|生日|名[字称]|姓名|拼音|秘密|主角|人物|全书|故事|情节|线索|钥匙|命运|命運|真相|管理|用户|区分|大小写|默认|初始"
    r"|随机|系统|自动|生成|公布|公开|暂|保密|加密|忘|丢失|过期|失效|有效|作废|相同|一致|统一|一样|只有|知道|告诉|联系|询问|打开|解开|每[天周月次年]|以[前后上下内]|不[能会可要得再]|没有|无法|尚未|两人|共同|最大|最后|最初|长度|至少|最多|必[须填需]|可选|混合|组合|数字|字母|英文|汉字|中文|家人|父亲|母亲|手机|电话|证件|身份"
)
"""Of what sentences about a password are made, rather than lines of verse."""
_PHRASE_BEFORE = re.compile(
    r"\b(?:[Uu]se|using|with|set|put|[Tt]ry|[Ee]nter|chose|picked|took) [\"“‘']([A-Za-z0-9][^\"“”‘’'\n]{3,40})[\"”’'] ?\Z"
)
_QUOTED_BEFORE = re.compile(r"[“‘「『\"]([^“”‘’「」『』\"\n]{4,24})[”’」』\"][ ]?\Z")
_CODE_NUMBER = re.compile(r"[#*]?[0-9]{4,8}[#*]?\Z")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}\Z")
_JOINED_NUMBER = re.compile(r"[a-z]{3,24}_[0-9]{1,4}[a-z]{1,12}\Z")
_CHAIN = re.compile(r"[a-z]+(?:([-._])[a-z]+)(?:\1[a-z]+){2,6}\Z")
_GAP = re.compile(r"\t|[ ]{2}")
_OTHER_CELL = re.compile(r"[^\s|][ \t]*\|[^|\n]{0,40}\Z")
_ENDS_LINE = re.compile(r"[ \t]*(?:[\r\n]|\Z)")
_MEASURE = re.compile(r"[0-9]+(?:[.,/:][0-9]+){0,3}[A-Za-z%]{0,2}\Z")
_CREDENTIALS = re.compile(
    r"(?:login|log in|sign in|user(?:name)?|machine|account|as|default|benutzer(?:name)?|konto|kundennummer|kunden-?nr\.?|customer(?: number| no\.?)?|identifiant|utilisateur|usuario|cuenta|utente|usuário|логин)[ \t:=]{1,3}"
    r"(?:with |as |name )?(?!and\b|your\b|the\b|with\b|a\b)[^\s,;]{1,64}[ \t,;/]+(?:and |with |the |your )*\Z",
    re.IGNORECASE,
)
_QUALIFIERS = (
    NO_SECRET_WORDS
    | FUNCTION_WORDS
    | word_set(
        "change changes protection recovery list requirements settings history check box app storage day tages jour día giorno dia dnia dagen safety security sharing entry"
        " dialog screen page book hashing encryption validation managers tips advice expired again"
    )
)
_PHRASE_NAMES = ("passphrase", "phrase de passe", "phrase secrète", "frase de contraseña", "frase de paso", "frase segreta", "frase-passe", "passwortsatz", "wachtwoordzin", "кодовая фраза", "парольная фраза")  # fmt: skip
_THING_BEFORE_LABEL = re.compile(
    r"(?!.*\b(?i:scenes?|chapters?|acts?|novel|story|plot|hero|heroine|villain|draft|kapitel|szene|roman|chapitre|scène|capítulo|escena)\b)"
    r"[\s#>*+•-]{0,8}(?=[^\n]{0,60}(?i:key|clé|clave|schlüssel|gpg|pgp|ssh|luks|laptop|notebook|drive|disk|disc|stick|backup|encrypt|veracrypt|cryptomator|container|vault|archive|keepass|bitwarden|festplatte|platte|disque|disco|computer|rechner|ordinateur|wallet|wi-?fi|wlan|router|nas\b|server|phone))"
    r"(?u:[\w ./()'’&+#,-]){2,60}(?:[ ]?[—–→:;,]|[ ]-|[ ]->|[)])[ ](?:[Tt]he |[Ii]ts |[Mm]y )?\Z"
)
"""A key or a device, and a sign, before the label of its passphrase."""
_WORDS_ABOUT_PHRASES = word_set(
    "she he they it we him them same one ones first last line lines word words phrase phrases sentence title name names letter least letters song poem quote verse page chapter scene hero heroine"
    " agent character protagonist reader readers narrator author written kept stored saved hidden known unknown told asked asks needed not never always only whoever owner given chosen guess guesses guessed"
    " forgot forgotten forget forgets lost remember remembers remembered type types typed enters entered changed changes need needs how what where when who why which longer string sequence random"
    " protects protect passwords password secret here there above below again finally whispers says said"
    " sie er ihr ihm wir nicht nie nur steht liegt geschrieben dieselbe derselbe selbe gleiche gleichen satz wort wörter zeile vergessen"
    " elle il ils nous même première ligne mot mots écrite notée pas jamais oubliée celle celui"
    " ella él misma mismo primera línea palabra escrita"
)
"""Words of which sentences about a passphrase are made, rather than passphrases."""
REMARK_WORDS = word_set(
    "least characters digits usual separate issued provided supplied managed rotates rotated expire expires synced quarter everyone anyone reception admin administrator hackers turning act"
    " whispered spoken printed delivered follows following bring brings nobody anybody held kept holds caretaker lawyer reveals reveal revealed traitor betrayal mystery ending finale final words spaces letters yes read notes attached agreed"
    " pending shortly separately assigned waiting today tonight tomorrow yesterday probably maybe perhaps whatever meant means meaning"
    " kommt bekommst bekommen bekommt erhältst erhalten erfragen fragen weiß kennt schlüssel rätsel ende wörter buchstaben hausmeister letztes mindestens zeichen ziffern noch post empfang nachgereicht"
    " moins caractères chiffres fourni fournie accueil généré générée courrier demander donné donnée clé mystère énigme lettres sait connaît gardien"
    " mínimo caracteres dígitos pregunta preguntar recepción enviada enviado generada generado correo correio recepção pergunta perguntar gerada clave misterio sabe tiene letras chave mistério enigma portero"
    " minimo almeno caratteri cifre generata generato sistema fornita reception chiedi chiedere inviata sa chiave mistero lettere portiere"
    " staat ligt minstens tekens cijfers vragen receptie bij balie weet sleutel geheim letters"
    " wysłane wysłany najmniej znaków znaki cyfr podane zapytaj u recepcji taka takie zna klucz tajemnicy liter minst tecken siffror mindst tegn"
)
"""Words of the same in other languages, and of who gives a password out."""
_WORDS_OF_SYSTEMS = word_set(
    "user users account accounts server service database connection connect connects broker host credential credentials access application app used using field form page file document website site customer"
    " value values number numbers date year birthday nickname nobody everyone reason key keys chapter novel story plot title shown entered required"
    " benutzer konto dienst datenbank verbindung feld seite kunde geburtstag datum jahr kapitel roman buchstaben"
    " utilisateur compte serveur service connexion champ client anniversaire date chapitre roman lettre lettres"
    " usuario cuenta servidor conexión campo cliente cumpleaños fecha capítulo novela letra letras"
)
_PLACING = word_set(
    "under behind inside beneath beside elsewhere separately unter hinter neben über dans sous derrière debajo detrás sobre sotto dietro dentro sopra onder achter temporary provisional already still never"
)
_FIRST_WORDS = word_set(
    "my our the a an two three four five six seven eight nine ten mein meine unser unsere der die das ein eine zwei drei vier fünf sechs sieben mon ma mes notre nos le la les un une deux trois quatre cinq"
    " mi mis nuestro nuestra el los las una dos tres cuatro il lo gli mio mia due tre quattro o os as meu minha nosso nossa um uma dois três de het een mijn onze twee drie"
)
"""Articles, owners and numbers with which a sentence begins that somebody types in."""
_ARTICLES = word_set(
    "the a an der die das ein eine le la les un une el los las una il lo gli uno os o as um uma de het een"
)
"""Words with which the definition of a thing begins, or the note of an outline."""
_NO_OWNERS = FUNCTION_WORDS - word_set("my our your for of on at to in")
_PARTICLES = word_set("on off this")
_OTHER_SENSES = frozenset(("pass", "passwd"))
"""A way over a mountain, and a program that begins its messages with its name."""
_OWN_NAMES = (
    "my password", "our password", "my passphrase", "our passphrase", "my login", "mein passwort", "unser passwort", "mein kennwort", "mon mot de passe", "notre mot de passe", "mi contraseña", "mi clave", "nuestra contraseña", "la mia password",
    "la nostra password", "minha senha", "nossa senha", "mijn wachtwoord", "ons wachtwoord", "мой пароль", "наш пароль", "mitt lösenord", "moje hasło",
)  # fmt: skip
_VERBS = word_set("is was ist lautet est es è é")
_ASKING = word_set(
    "ask pedir demander demandez fragen frag chiedere vragen vraag спросить come como"
)
_WORDS_OF_ADVICE = word_set(
    "see ask must should can could will would please enter choose pick use used set get try send sent page at least than is are was i you"
    " from contact call until changed expires valid since"
)
_BEGIN_REMARKS = word_set(
    "known written kept stored saved noted chosen given typed lost taped printed sealed shared agreed whoever"
)
_WORDS_OF_ORDERS = _WORDS_OF_ADVICE - word_set("at is are was i you from")
_NO_SENTENCE = (
    _WORDS_ABOUT_PHRASES | REMARK_WORDS | _WORDS_OF_ORDERS | _WORDS_OF_SYSTEMS | STORY_WORDS
)
_NO_PAIR = _NO_SENTENCE | _BEGIN_REMARKS | _PLACING
"""Words of remarks about a password, rather than of one."""
_NAMES_USER = re.compile(
    r"\b(?:user(?:[ -]?name)?|login|account|e?-?mail|id|benutzer|konto|usuario|utente|utilisateur)\b[ ]?(?:[:=–—-][ ]?|is )?[\w.@+-]{2,}",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"(?:\[\[|\A[ \t]*(?:[*+][ \t]*)+\[|\[(?:ask|change|enter|forgot|give|guess|need|reset|say|show|tell|type)\b)[^\[\]\n]*\Z",
    re.IGNORECASE,
)
"""The begin of a choice of interactive fiction, which leads to the name of a place: `* [Give the password] -> gate`."""
_NAME_OF_SETTING = re.compile(r"[ \t]{0,12}[\w.-]{0,40}\Z")
_SETTING = re.compile(r"[\w.-]{2,40}=")
_USER_SETTING = re.compile(
    r"[ \t-]{0,12}(?:user|user_?name|login|account)[ ]?[:=][ ]", re.IGNORECASE
)
_SHORT_NAMES = frozenset(("pw", "pwd", "psk"))
_FRENCH_NAMES = frozenset(("mdp", "mot de passe"))
"""Names behind which a `box` is a router."""
_TOLD_BESIDE_NAMES = (BLANK_VALUES | NO_SECRET_TAILS) - word_set("box service")
_NAMES_WITH_DOT = re.compile(r"[A-Z][a-z]{2,}[.][A-Z][a-z]{2,}\Z")
_FILE_ENDINGS = (
    ".com", ".net", ".org", ".example", ".html", ".php", ".txt", ".json", ".yaml", ".toml", ".conf", ".docx", ".pdf",
)  # fmt: skip
_NO_WORDS_BEHIND_SHORT_NAMES = FUNCTION_WORDS | NO_SECRET_WORDS | COMMON_VALUES | BLANK_VALUES
_FAMOUS = frozenset(
    (
        "letmein",
        "qwerty",
        "qwertz",
        "azerty",
        "asdf",
        "asdfgh",
        "qwertyuiop",
        "iloveyou",
        "passw0rd",
        "trustme",
        "opensesame",
    )
)
"""Passwords that half the world has, and that are no words."""
_PARTS_OF_SPEECH = word_set("noun verb word term substantiv nomen wort nom mot sustantivo palabra")
_SHORT_REMARK = re.compile(r",(?: (?u:[\w'’]{1,16})){1,4}[.!]?[ \t]*(?:[\r\n]|\Z)")
_DASH_IN_ROW = re.compile(r"\w[ ][-–—][ ]")
_ADDRESS_BEFORE = re.compile(r"https?://[^\s]{4,120}[,;]? (?:\w{1,12} )?\Z")
_LINE_OF_LOGIN = re.compile(
    r"(?:\A|\n)[ \t]*(?:login|user|account)[ \t]+\S{1,64}[ \t]*\r?\n[ \t]*\Z"
)
_MEETING_BEFORE = re.compile(r"(?<![0-9])(?:[0-9]{3,4}[ -]?){3}(?:,| /| –| -|;)? \Z")
_AS_CODE = re.compile(
    r" as (?:the |your |my |our |a )?(?:[a-z-]{2,9} )?(?:pin|code|passcode)\b", re.IGNORECASE
)
_VERBS_OF_ENTERING = frozenset(("type", "dial", "punch", "used", "picked"))
"""Verbs before what must be odd to be a password; behind the others any word may be one."""
_VERBS_OF_USE = frozenset(
    [
        "use",
        "using",
        "set",
        "try",
        "enter",
        "chose",
        "choose",
        "pick",
        "keep",
        "put",
        "make",
        "take",
    ]
)
_AGREED_ON = re.compile(
    r"\b(?:agreed|settled|decided) (?:on|upon)\Z|\b(?:went|go|going) with\Z", re.IGNORECASE
)
_HAN_VERBS_OF_USE = frozenset("用以拿把将將")
_LETTERS = string.ascii_letters
_PRINTABLE = string.ascii_letters + string.digits + string.punctuation
_QUOTED_PLAIN = r"[\"'“‘`「«]?[ ]?([!#-&(-~\u00c0-\u024f]{3,64}?)[ ]?[\"'”’`」»]?"
_FROM_TO = re.compile(
    rf"(?u:[\w \t'’@.]){{0,60}}?[ \t](?:from|von|van|de|da|från|fra|z|od|с|от)[ \t]+{_QUOTED_PLAIN}[ \t,]+(?:to|auf|zu|in|naar|à|a|para|por|till|til|na|на)[ \t]+"
    rf"{_QUOTED_PLAIN}(?=[\s,.;!?，。；]|\Z)"
    rf"|(?u:[\w \t'’@.]){{0,60}}?[ \t](?:no longer|not|nicht mehr|nicht|n['’]est plus|ya no es|no es|non è più|não é mais|niet meer|is niet|больше не)[ \t]+"
    rf"{_QUOTED_PLAIN}[ \t,]+(?:but|sondern|mais|sino|ma|mas|maar|а)[ \t]+{_QUOTED_PLAIN}(?=[\s,.;!?，。；]|\Z)",
    re.IGNORECASE,
)
_HAN_FROM_TO = re.compile(
    rf"[^\n\x00-\x7f]{{0,4}}?(?:从|由|從|自)[^\n\x00-\x7f，。；“‘「]{{0,6}}[ ]?{_QUOTED_PLAIN}[ ]?(?:改|换|換|变|變|更新|修改|变更|更改)"
    rf"(?:成了?|为了?|為|到)[ ]?{_QUOTED_PLAIN}(?=[\s,.;!?]|[^\x00-\x7f]|\Z)"
    rf"|[^\n\x00-\x7f]{{0,4}}?[ ]?{_QUOTED_PLAIN}(?:から|에서)[ ]?{_QUOTED_PLAIN}[ ]?(?:[にへ]|으?로)"
)


def _english(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, name, start = match.string, match["name"], match.start("name")
    line_start = text.rfind("\n", max(0, start - LONGEST_LINE_HEAD), start) + 1
    head = text[max(line_start, start - LONGEST_LINE_HEAD) : start]
    whole_name = _name_before(head) + name
    if not name.lower().startswith(_UNMISTAKABLE) and strength_of(whole_name) < Strength.SECRET:
        return NOTHING
    if whole_name.lower() == "pass" and not match["assign"] and not _may_name_value(match, head):
        return NOTHING
    if match["from"] is not None:
        return _change(_FROM_TO.match(text, match.end("name")))
    qualifier = (match["qualifier"] or "").lower().split()
    if name.lower() in _FRENCH_NAMES:
        qualifier = [word for word in qualifier if word != "box"]
    if not _QUALIFIERS.isdisjoint(qualifier) and not _VERBS.issuperset(qualifier):
        return NOTHING
    kind, value, (first, last) = _value_of(match)
    if password_of_pair(head, text, first) or (
        "[" in head and _CHOICE.search(head) and value.isidentifier()
    ):
        return NOTHING
    if match["assign"] is not None:
        may_go_on = _is_sure_name(whole_name, head, text, (first, last))
        taken = may_go_on and _is_assigned(match, kind, value, head)
    elif match["prose"] is not None:
        may_go_on, taken = False, _is_stated(match, value, last)
    else:
        has_dash = not _DASHES.isdisjoint(text[match.end("name") : first])
        may_go_on = has_dash and not text.startswith(",", last)
        taken = _stands_apart(match, kind, value, head)
    if may_go_on and not taken and kind == "bare":
        end = _end_of_phrase(match, value, last, head)
        taken, last = end > 0, end
    return ((first, last),) if taken else NOTHING


def _is_sure_name(name: str, head: str, text: str, span: MatchSpan) -> bool:
    """Return whether what stands behind the sign is a value of this name: `pass` is also a place."""
    if name.lower() == "pass":
        value = text[slice(*span)]
        is_place = value.istitle() and value.isalpha() and text.startswith(", ", span[1])
        is_verb = _PLAIN_WORD_BEFORE.search(head) and not _NETWORK_BEFORE_PASS.search(head)
        return not (is_place or is_verb or _MEASURE.match(value))
    own = name[len(_name_before(head)) :].lower()
    return _is_compound(name) or not own.startswith("secret")


def _may_name_value(match: "re.Match[str]", head: str) -> bool:
    """Return whether `pass` is no verb here: behind a comma, in a column, or between a user and no word."""
    if head.endswith(", "):
        return True
    value = match["quoted"] or match["bare"] or ""
    between = match.string[match.end("name") : match.end() - len(value)]
    if (
        not head.strip("-*• \t")
        and _GAP.match(between)
        and _ENDS_LINE.match(match.string, match.end())
    ):
        return True
    return has_digit_and_letter(value) and _CREDENTIALS.search(head.rstrip(", ") + " ") is not None


def _name_before(head: str) -> str:
    return head[
        len(head.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-")) :
    ]


def _is_compound(name: str) -> bool:
    return len(name) > len("secret") and strength_of(name) >= Strength.SECRET


def _value_of(match: "re.Match[str]") -> tuple[str, str, MatchSpan]:
    kind = "quoted" if match["quoted"] is not None else "bare"
    value, first = match[kind], match.start(kind)
    if kind == "bare":
        if value[0] == "[" and value.find("]") > 1:
            value, first = value[1 : value.index("]")], first + 1
        value = trim_bare(value, in_query=match.string[max(0, match.start() - 1)] in "?&")
        value = value.rstrip("!?,;") if value[:-1].isalpha() else value
    return kind, value, (first, first + len(value))


def _is_assigned(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Return whether what stands behind `password:`, or in the cell beside it, is a password."""
    if "|" in match["assign"]:
        is_number = value.isdigit() and len(value) >= 4 and not _OTHER_CELL.search(head)
        return (has_digit_and_letter(value) and is_plain_value(value)) or is_number
    return _is_behind_colon(match, kind, value, head)


def _is_behind_colon(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Return whether what stands behind `password:` is a password, however plain."""
    is_dotted_pair = _is_dotted_pair(match, value, head) or (
        _NAMES_WITH_DOT.match(value) is not None and _is_among_settings(match, head)
    )
    if len(value) < 3 or not is_plain_value(value, code=not (is_dotted_pair or _is_dotted(value))):
        return False
    if match["assign"].startswith(",") and not match["name"].isupper():
        return False
    if kind == "quoted":
        named_phrase = any(part in match["name"].lower() for part in ("phrase", "psk"))
        named_phrase = named_phrase or head.rstrip().endswith(("{", "({"))
        return _is_quoted_value(value, phrase=named_phrase)
    text, last = match.string, match.start(kind) + len(value)
    if value.strip("#*").isdigit():
        is_year = _YEAR.match(value) is not None and _PLAIN_WORD_BEFORE.search(head) is not None
        return len(value) <= 20 and not is_year and not _COUNTS.match(text, last)
    in_shell = match["assign"] == "=" and (match["name"].isupper() or _is_flag(head))
    is_alone = in_shell or _ENDS.match(text, last) is not None
    is_chain = head.endswith("_") and value.count("-") >= WORDS_OF_A_CHAIN - 1
    if (has_sign(value) and len(value) >= 6) or (match["assign"] == "=" and is_chain and is_alone):
        return True
    qualifier = (match["qualifier"] or "").lower().split()
    is_told = not STORY_WORDS.isdisjoint((match["clause"] or "").lower().split())
    is_named = _VERBS.issuperset(qualifier) and not is_told
    is_word = is_dotted_pair or (is_named and _is_word(text, value, last, head))
    return is_alone and (has_digit_and_letter(value) or is_word)


def _is_dotted_pair(match: "re.Match[str]", value: str, head: str) -> bool:
    """Return whether words with dots stand behind a label in another language that says what it opens: `mdp wifi => lune.rousse`."""
    clause = (match["clause"] or "").lower().split()
    if not clause or not match["name"].lower().startswith(FOREIGN_NAMES):
        return False
    words = value.lower().split(".")
    is_pair = 2 <= len(words) <= 4 and all(word.isalpha() and len(word) > 2 for word in words)
    if not is_pair or head.strip(" \t>*-+•#") or value.endswith(_FILE_ENDINGS):
        return False
    is_told = not _TOLD_BESIDE_NAMES.isdisjoint(clause)
    return not is_told and not any(map(is_common_value, words))


def _is_word(text: str, value: str, last: int, head: str) -> bool:
    """Return whether a word is no part of code or of a sentence."""
    if (_CALL.search(head) and not _CONNECTION.search(head)) or names_a_secret(value):
        return False
    ends_setting = _NEXT_SETTING.match(text, last) or _CONNECTION.search(head)
    if text[last : last + 1] in {";", "("} and not ends_setting:
        return False
    words = re.split("[-_.]", value.lower())
    if len(words) >= WORDS_OF_A_CHAIN - 1 and "-" in value:
        words = [words[0], words[-1]]
    return FUNCTION_WORDS.isdisjoint(words) and words[0] not in _ASKING


def _is_quoted_value(value: str, *, phrase: bool) -> bool:
    words = value.lower().split()
    if len(words) == 1:
        is_variable = names_a_secret(value) and re.search("[_.-]|[a-z][A-Z]", value) is not None
        return not is_variable or has_digit_and_letter(value)
    if len(words) > 8 or any(map(is_common_value, words)):
        return False
    return phrase or FUNCTION_WORDS.isdisjoint(words)


def _end_of_phrase(match: "re.Match[str]", value: str, last: int, head: str) -> int:
    """Find the end of `blue horse tin roof`: words to the end of the line that are no sentence."""
    more = _WORDS_AFTER.match(match.string, last)
    if more is None and match["name"].lower() == "passphrase":
        more = _WORDS_TO_FULL_STOP.match(match.string, last)
    if more is None or not value.replace("-", "").isalpha() or not _LABEL_ALONE.match(head):
        return 0
    words = [value.lower(), *more[1].lower().replace(",", "").split()]
    if _is_chosen_phrase(match, [value, *more[1].split()], head):
        return more.end(1)
    numbered = any(word.isdigit() for word in words)
    is_long = numbered and len(words) >= WORDS_OF_A_CHAIN
    is_phrase_name = match["name"].lower() == "passphrase"
    is_long = is_long or (is_phrase_name and len(words) >= WORDS_OF_A_CHAIN)
    if words[-1] == "please":
        words.pop()
    sentence = _WORDS_OF_ADVICE if is_long else SENTENCE_WORDS
    named = words[:1] if is_long else words
    if not STORY_WORDS.isdisjoint(words):
        return 0
    if (
        words[0] in _ASKING
        or words[0] in _PLACING
        or words[0] in _BEGIN_REMARKS
        or is_blank(words[0])
        or not sentence.isdisjoint(words)
        or not REMARK_WORDS.isdisjoint(words)
    ):
        return 0
    is_common = any(map(is_common_value, named))
    if is_common and (is_common_phrase(words) or not FUNCTION_WORDS.isdisjoint(words)):
        return 0
    fewest = 2 if match["name"].lower() in {"passphrase", "psk"} and numbered else 3
    if match["assign"] and _is_among_settings(match, head):
        fewest = 2
    is_phrase = len(words) >= fewest
    return more.end(1) if is_phrase else 0


def _is_chosen_phrase(match: "re.Match[str]", written: Sequence[str], head: str) -> bool:
    """Return whether words are a thing or a short sentence of something else: `please take your shoes off`.

    Titles begin with a capital letter, definitions with an article, so that these need a user or a
    network beside them.
    """
    words = [word.strip(",").lower() for word in written]
    beside = _NETWORK_BEFORE_PASS.search(head) is not None or is_beside_account(
        match.string, match.start(), match.end()
    )
    if beside and words[0] == "please":
        del words[0]
    before = re.findall(r"\w+", head.lower())
    if not STORY_WORDS.isdisjoint(before + words) or not _NO_PAIR.isdisjoint(words):
        return False
    if not _NO_OWNERS.isdisjoint(before):
        return False
    is_other = is_blank(words[0]) or words[0] in _ASKING
    if is_other or any(is_common_value(word) for word in words if word not in _PARTICLES):
        return False
    is_loose = not written[0].islower() or words[0] in _ARTICLES
    is_loose = is_loose or match["name"].lower() in _OTHER_SENSES
    is_loose = is_loose or (len(words) == 3 and not FUNCTION_WORDS.isdisjoint(words))
    if is_loose and not beside:
        return False
    if len(words) == 2:
        return is_plain_pair(words) and not any(map(is_blank, words))
    return len(words) > 2


def is_beside_account(text: str, start: int, end: int) -> bool:
    """Return whether the line above or below names a user, a network or a site."""
    line = text.rfind("\n", max(0, start - LONGEST_LINE_HEAD), start) + 1
    above = text[max(0, line - LONGEST_LINE_HEAD) : max(0, line - 1)].rpartition("\n")[2]
    last = text.find("\n", end, end + LONGEST_LINE_HEAD)
    below = text[last + 1 : last + LONGEST_LINE_HEAD].partition("\n")[0] if last >= 0 else ""
    return any(map(_LINE_OF_ACCOUNT.match, (above, below)))


def _is_among_settings(match: "re.Match[str]", head: str) -> bool:
    """Return whether a setting of a file stands above or below it, of a user or with the same joint."""
    text, joint = match.string, (match["assign"] or "").strip()
    if joint not in {":", "="} or not _NAME_OF_SETTING.match(head):
        return False
    line = text.rfind("\n", max(0, match.start() - LONGEST_LINE_HEAD), match.start()) + 1
    above = text[max(0, line - LONGEST_LINE_HEAD) : max(0, line - 1)].rpartition("\n")[2]
    end = text.find("\n", match.end(), match.end() + LONGEST_LINE_HEAD)
    below = text[end + 1 : end + LONGEST_LINE_HEAD].partition("\n")[0] if end >= 0 else ""
    if joint == "=" and match["assign"] == "=":
        return any(map(_SETTING.match, (above, below)))
    return any(map(_USER_SETTING.match, (above, below)))


def _is_stated(match: "re.Match[str]", value: str, last: int) -> bool:
    """Ask of a value in a sentence that no word could stand there: “the password is swordfish” is fiction."""
    code = not _is_dotted(value) and not _CHAIN.match(value)
    if not is_plain_value(value, code=code) or _DOUBT.match(match.string, last):
        return False
    if value.isdigit():
        return 4 <= len(value) <= 12 and not _COUNTS.match(match.string, last)
    if (_CHAIN.match(value) and not names_a_secret(value)) or value.lower() in _FAMOUS:
        return True
    words = value.split()
    if len(words) >= 4 and match["quoted"] is not None:
        is_plain = value[0].islower() and _WORDS_ABOUT_PHRASES.isdisjoint(words)
        is_plain = is_plain and all(word.replace("-", "").isalnum() for word in words)
        is_numbered = any(map(str.isdigit, words))
        is_named = is_numbered or match["name"].lower() == "passphrase"
        is_phrase = is_named or FUNCTION_WORDS.isdisjoint(words)
        return is_plain and len(words) <= 8 and is_phrase
    return has_digit_and_letter(value) and len(value) >= 5


def _stands_apart(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Take `password Xy12z` and, beside a user, any word: `login bo password walnut`."""
    code = not _is_dotted(value)
    if len(value) < 4 or not is_plain_value(value, code=code):
        return False
    if _DOUBT.match(match.string, match.end()):
        return False
    last = match.start(kind) + len(value)
    if value.isdigit():
        return match["name"].lower() == "passcode" and not _COUNTS.match(match.string, last)
    if has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6):
        return True
    return not names_a_secret(value) and _stands_for_value(match, kind, value, head)


def _is_dotted(value: str) -> bool:
    """Return whether dots stand between words with a number, as in no name of code: `Loom.and.Loam_61`."""
    return (
        has_digit_and_letter(value)
        and _DOTTED_VALUE.match(value) is not None
        and not names_a_secret(value)
    )


def _stands_for_value(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Take any word behind `set PASSWORD`, `requirepass`, `--password`, a user's name or a dash."""
    last = match.start(kind) + len(value)
    is_line_end = _ENDS_LINE.match(match.string, last) is not None
    behind = match.end() if kind == "quoted" else last
    is_line = not head.strip("-*•> \t") and _ENDS_LINE.match(match.string, behind) is not None
    if match["name"].lower() in _SHORT_NAMES and is_line:
        return value.isalpha() and value.lower() not in _NO_WORDS_BEHIND_SHORT_NAMES
    if _SETS_VARIABLE.search(head) and match["name"].isupper():
        return _ENDS_LINE.match(match.string, last) is not None
    if head.lower().endswith("require"):
        return True
    if _is_flag(head):
        return _NEXT_FLAG.match(match.string, last) is not None
    beside_user = _CREDENTIALS.search(head.rstrip(", ") + " ") is not None
    beside_user = beside_user or (_ADDRESS_BEFORE.search(head) is not None and is_line_end)
    first = max(0, match.start() - LONGEST_LINE_HEAD)
    is_below_user = _LINE_OF_LOGIN.search(match.string, first, match.start()) is not None
    beside_user = beside_user or (is_line and is_below_user)
    beside_user = beside_user or (_MEETING_BEFORE.search(head) is not None and is_line_end)
    between = match.string[match.end("name") : match.start(kind)]
    if not _DASHES.isdisjoint(between):
        if _LABEL_ALONE.match(head) and not _DASH_IN_ROW.search(head):
            beside_user = _ENDS_LINE.match(match.string, last) is not None
        is_other = (
            value.lower() in _NO_WORDS_BEHIND_SHORT_NAMES or value.lower() in _PARTS_OF_SPEECH
        )
        beside_user = beside_user or (
            not is_other and _is_beside_named_user(match.string, head, last)
        )
    return (
        (
            beside_user
            or (kind == "quoted" and (match["name"].isupper() or head.endswith(("_", " :", "{:"))))
        )
        and value.lower() not in FUNCTION_WORDS
        and _ENDS.match(match.string, match.end() if kind == "quoted" else last) is not None
    )


def _is_beside_named_user(text: str, head: str, last: int) -> bool:
    """Return whether the clause before or behind names a user, or a remark ends the line: `pw – walnut, no caps`."""
    line = text.find("\n", last, last + LONGEST_LINE_HEAD)
    behind = text[last : last + LONGEST_LINE_HEAD if line < 0 else line]
    is_first = _LABEL_ALONE.match(head) is not None
    if is_first and _SHORT_REMARK.match(text, last) and not _DASH_IN_ROW.search(head):
        return True
    is_clause = is_first or head.rstrip().endswith((",", ";", "(", "–", "—", "|", "/"))
    return is_clause and _NAMES_USER.search(behind if is_first else head) is not None


def _is_flag(head: str) -> bool:
    """Return whether the name that ends here is a flag such as `--password`."""
    return _name_before(head).startswith("--")


def _change(match: "re.Match[str] | None") -> Sequence[MatchSpan]:
    """Take both values of “changed from X to Y”, if one of them cannot be a word."""
    if match is None:
        return NOTHING
    first, second = (at for at in range(1, len(match.groups()) + 1) if match[at] is not None)
    values = match[first], match[second]
    is_odd = any(map(has_digit_and_letter, values))
    is_number = all(map(_CODE_NUMBER.match, values)) and not all(map(_YEAR.match, values))
    if not all(map(is_plain_value, values)) or not (is_odd or is_number):
        return NOTHING
    return (match.span(first), match.span(second))


def _use_as(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from “as the password” for the value, and before it for a verb such as “use”."""
    text, end = match.string, match.start()
    head = text[max(0, end - 80) : end].rstrip(" \"'”’`」,")
    before = head.rstrip(_PRINTABLE)
    value = head[len(before) :].lstrip("\"'`")
    first = max(0, end - 80) + len(head) - len(value)
    quoted = _QUOTED_BEFORE.search(text, max(0, end - 40), end)
    if quoted is not None and _HAN_AND_NUMBER.match(quoted[1]):
        return (quoted.span(1),)
    phrase = _PHRASE_BEFORE.search(text, max(0, end - 80), end)
    if phrase is not None and FUNCTION_WORDS.isdisjoint(phrase[1].lower().split()):
        return (phrase.span(1),)
    before = before.rstrip(" \"'“‘「")
    is_english = text[end : end + 4].lower() == " as "
    if is_english:
        word = before[len(before.rstrip(_LETTERS)) :].lower()
        is_chosen = word in _VERBS_OF_USE
        is_used = is_chosen or word in _VERBS_OF_ENTERING
    else:
        is_used = is_chosen = before[-1:] in _HAN_VERBS_OF_USE
    if is_english and _AGREED_ON.search(before):
        is_used = is_chosen = True
    if not is_used or not 4 <= len(value) <= 64:
        return NOTHING
    is_sure = has_digit_and_letter(value) or has_sign(value)
    if _AS_CODE.match(text, end):
        is_sure = is_sure or (_CODE_NUMBER.match(value) is not None and not _YEAR.match(value))
    elif not is_sure and is_chosen:
        is_sure = len(value) >= 6 and value.islower() and value not in FUNCTION_WORDS
    if not is_sure or not is_plain_value(value) or names_a_secret(value):
        return NOTHING
    return ((first, first + len(value)),)


def _han(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text = match.string
    if match["from"] is not None:
        return _change(_HAN_FROM_TO.match(text, match.end("name")))
    kind, value, (first, last) = _value_of(match)
    if password_of_pair(text[max(0, match.start() - LONGEST_USER) : match.start()], text, first):
        return NOTHING
    if kind == "quoted" and _HAN_AND_NUMBER.match(value):
        return ((first, last),)
    if not is_plain_value(value, code=False) or _DOUBT.match(text, last):
        return NOTHING
    if value.strip("#*").isdigit():
        fewest = 3 if match["assign"] or match["prose"] else 4
        in_row = "|" in (match["assign"] or "") and _OTHER_CELL.search(
            text, max(0, match.start() - LONGEST_LINE_HEAD), match.start()
        )
        taken = not in_row and fewest <= len(value) <= 20 and not _COUNTS.match(text, last)
    elif (
        has_digit_and_letter(value)
        or is_numbered_word(value)
        or _JOINED_NUMBER.match(value)
        or (has_sign(value) and len(value) >= 5)
    ):
        taken = not _COUNTS.match(text, last)
    else:
        chain = "-" in value.strip("-") or value.strip("_").count("_") > 1
        is_cell = "|" in (match["assign"] or "")
        taken = ((match["assign"] is not None and not is_cell) or chain) and _is_han_word(
            text, kind, value, last
        )
    return ((first, last),) if taken else NOTHING


def _han_and_number(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),)


def _han_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take Chinese or Korean words behind a label that no dialogue has: a compound such as 解压密码."""
    text, start, value = match.string, match.start(), match["value"]
    head = text[max(0, start - 6) : start]
    is_compound = head.endswith(_HAN_COMPOUNDS)
    if text.startswith(("(全拼", "（全拼", "(拼音", "（拼音"), match.end()):
        return NOTHING
    if _HAN_BLANK.search(value) or is_remark_han(value) or _DOUBT.match(text, match.end()):
        return NOTHING
    has_mark = not value.isalpha()
    if match["is"] is not None and not is_compound:
        return NOTHING
    if not (is_compound or has_mark):
        return NOTHING
    return (match.span("value"),)


def _phrase_of_thing(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a sentence of plain words behind the label of the passphrase of a key or a device."""
    text, start = match.string, match.start()
    first = max(0, start - LONGEST_LINE_HEAD)
    line = text.rfind("\n", first, start) + 1
    if (not line and first) or not _THING_BEFORE_LABEL.fullmatch(text, max(first, line), start):
        return NOTHING
    words = match["phrase"].lower().replace(",", "").split()
    is_other = is_blank(words[0]) or words[0] in _ASKING or is_common_value(words[0])
    if is_other or not _WORDS_ABOUT_PHRASES.isdisjoint(words):
        return NOTHING
    return (match.span("phrase"),) if _WORDS_OF_ORDERS.isdisjoint(words) else NOTHING


def is_plain_sentence(words: Sequence[str]) -> bool:
    """Return whether words make a sentence that says nothing of a password: `my cat eats the second draft`."""
    if len(words) < FEWEST_WORDS_OF_SENTENCE or words[0] not in _FIRST_WORDS:
        return False
    is_common = any(is_common_value(word) for word in words if word not in FUNCTION_WORDS)
    return _NO_SENTENCE.isdisjoint(words) and not is_common and not any(map(is_blank, words))


def is_plain_pair(words: Sequence[str]) -> bool:
    """Return whether two words are a thing rather than a remark: `grandfather clock`, and not `kept elsewhere`."""
    is_thing = all(word.isalpha() and len(word) > 3 for word in words)
    is_thing = is_thing and _NO_PAIR.isdisjoint(words)
    return is_thing and is_latin("".join(words)) and not any(map(is_common_value, words))


def _own_phrase(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the name in quotes that somebody calls their password for a thing."""
    words = match["phrase"].split()
    is_name = all(word[0].isupper() or word[0].isdigit() for word in words)
    is_name = is_name and FUNCTION_WORDS.isdisjoint(map(str.lower, words))
    return (match.span("phrase"),) if is_name and not is_stand_in(match["phrase"]) else NOTHING


def _han_sentence(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a short sentence behind the label of a thing's password, alone on its line: of a cat, of lunch."""
    text, start, value = match.string, match.start(), match["value"]
    first = max(0, start - LONGEST_LINE_HEAD)
    line = text.rfind("\n", first, start) + 1
    if not line and first:
        return NOTHING
    line = max(first, line)
    is_of_thing = _HAN_THING.fullmatch(text, line, start) is not None
    is_alone = not text[line:start].strip(" \t#>*+•·-")
    if _is_verse(value, is_of_thing=is_of_thing, is_alone=is_alone):
        return (match.span("value"),)
    is_password = is_alone and not match[0].startswith("口令")
    is_beside = _BEHIND_ACCOUNT.fullmatch(text, line, start) is not None
    is_beside = is_beside or (is_alone and is_beside_account(text, start, match.end()))
    is_item = not text[line:start].isspace() and line < start
    is_request = is_of_thing and value.startswith("请")
    is_taken = (is_of_thing or is_beside or is_password) and _is_chosen_han(
        value, is_sure=is_beside or is_request or (is_password and not is_item)
    )
    return (match.span("value"),) if is_taken else NOTHING


def _is_chosen_han(value: str, *, is_sure: bool) -> bool:
    """Return whether words say nothing of a password: homely ones, or where the label is sure any that make no title."""
    said = _DOES_NOT.sub("", value)
    is_remark = _HAN_BLANK.search(said) or is_remark_han(said) or _ABOUT_PASSWORDS.search(value)
    if is_remark:
        return False
    if _HOMELY.search(value):
        return True
    return is_sure and _NO_VERSE.search(said) is None and _OF_TITLES.search(value) is None


def _foreign_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take Japanese, Korean or Russian words alone behind a label at the begin of a line."""
    text, start, value = match.string, match.start(), match["value"]
    first = max(0, start - LONGEST_LINE_HEAD)
    line = text.rfind("\n", first, start) + 1
    if (not line and first) or not _FOREIGN_HEAD.fullmatch(text, max(first, line), start):
        return NOTHING
    is_remark = _FOREIGN_REMARK.search(value) is not None or any(map(is_blank, value.split()))
    return NOTHING if is_remark else (match.span("value"),)


def _is_verse(value: str, *, is_of_thing: bool, is_alone: bool) -> bool:
    """Return whether it has the length of a line of verse, and none of the words that prose is made of."""
    is_line = len(value) in _LENGTHS_OF_VERSES and (is_of_thing or is_alone)
    is_short = len(value) in _LENGTHS_OF_SHORT_VERSES and is_of_thing
    return (is_line or is_short) and _NO_VERSE.search(value) is None and not is_remark_han(value)


def _number_after_colon(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return NOTHING if _COUNTS.match(match.string, match.end(1)) else (match.span(1),)


def _is_han_word(text: str, kind: str, value: str, last: int) -> bool:
    if len(value) < 3 or not value.isascii() or names_a_secret(value):
        return False
    if not FUNCTION_WORDS.isdisjoint(re.split("[-_. ]", value.lower())):
        return False
    return kind == "quoted" or _ENDS.match(text, last) is not None


_LOGGING_IN = (
    "melde dich mit ", "melden sie sich mit ", "meldet euch mit ", "einloggen mit ", "log dich mit ", "logg dich mit ", "anmelden mit ", "anmeldung mit ", "connecte-toi avec ", "connectez-vous avec ", "connexion avec ",
    "inicia sesión con ", "iniciar sesión con ", "entra con ", "accedi con ", "entre com ", "entra com ", "inloggen met ", "log in met ", "logga in med ", "log ind med ", "logg inn med ", "zaloguj się jako ",
    "zaloguj się danymi ", "войди как ", "войди под ", "вход под ", "зайди под ",
)  # fmt: skip
_AS_PASSWORD = tuple(
    f" as {whose}{which}{name}"
    for whose in ("", "the ", "your ", "my ", "our ", "a ")
    for which in (
        "",
        "new ",
        "temporary ",
        "wifi ",
        "wi-fi ",
        "admin ",
        "login ",
        "master ",
        "shared ",
    )
    for name in ("password", "passphrase", "passcode", "pin", "code")
)
_AS_HAN_PASSWORD = tuple(
    f"{how}{which}{name}"
    for how in ("作为", "作為", "作", "做", "当", "为", "為")
    for which in ("", "登录", "新")
    for name in ("密码", "密碼", "口令")
)
# `labels` takes these values, and in a third of the time.
_LEFT_TO_LABELS = r"(?!p(?:ass)?w(?:or)?d[:=](?:pass|pwd|[ ]?[*](?![*] [a-z])|[ ]?(?=[A-Za-z0-9]{6,64}(?:[\s,;&]|\Z))[A-Za-z]{0,8}[0-9][A-Za-z0-9]{5,63}))"
_ENGLISH_NAME = (
    rf"{_LEFT_TO_LABELS}(?P<name>password|passwords|passwd|passphrase|passcode|pwd|psk|(?u:{'|'.join(FOREIGN_NAMES)})(?:et|en|ets|em|a|y|i|u)?"
    r"|memorable word|pass|p/w|pw|secret)(?![A-Za-z0-9_,;\r\n-])"
)


def _beside_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the second of `user / value`, if it cannot be a word or stands behind `user/password:`."""
    return _plain_beside_user(match, 1)


def _plain_beside_user(match: "re.Match[str]", group: int | str) -> Sequence[MatchSpan]:
    value = trim_bare(match[group].partition("`")[0], in_query=False).rstrip("!?,;")
    if not is_plain_value(value) or value[0] in "/\\" or len(value) < 3:
        return NOTHING
    named = match[0][0] == "/" and not is_common_value(value)
    is_sure = named or has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6)
    start = match.start(group)
    return ((start, start + len(value)),) if is_sure else NOTHING


def _stated_beside_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of `sign in as user, password value`, which may have a dot: `colophon.Bay`."""
    found = _plain_beside_user(match, "value")
    if found or match["name"] is None:
        return found
    value = match["value"].partition("`")[0].rstrip(".,;!?\"'”)")
    is_joined = re.search(r"[A-Za-z][._-][A-Za-z]|[a-z][A-Z]", value) is not None
    is_taken = is_joined and is_plain_value(value, code=False) and "(" not in value
    start = match.start("value")
    return ((start, start + len(value)),) if is_taken else NOTHING


def _used_to_log_in(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from 登录 for X of `用 X 登录`; beside a user it may be numbered, alone it must be odd."""
    text, end = match.string, match.start()
    first = max(0, end - LONGEST_LINE_HEAD)
    used = _USED_BEFORE.search(text, first, end)
    if used is None or not is_plain_value(used[1]) or names_a_secret(used[1]):
        return NOTHING
    has_user = _HAN_USER.search(text, first, used.start()) is not None
    is_numbered = has_user and has_digit_and_letter(used[1])
    return (used.span(1),) if is_numbered or oddity(used[1]) is Oddity.UNMISTAKABLE else NOTHING


def _second_of_pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take Y of `credentials: ["X", "Y"]`, if it is more than a word."""
    value = match[1]
    is_odd = oddity(unaccented(value)) >= Oddity.NUMBERED or has_digit_and_letter(value)
    return (match.span(1),) if is_odd and is_plain_value(value) else NOTHING


def _after_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of `p:` behind `u: name`."""
    first = max(0, match.start() - LONGEST_LINE_HEAD)
    if _USER_BEFORE.search(match.string, first, match.start()) is None:
        return NOTHING
    return _beside_user(match)


def _behind_slash(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take X of `Reedsy: bob / X`, if it can only be a password."""
    text, start = match.string, match.start()
    value = match[1].rstrip(".,;)")
    is_pair = _NAME_BEFORE_SLASH.search(text, max(0, start - LONGEST_LINE_HEAD), start) is not None
    is_odd = oddity(value) is Oddity.UNMISTAKABLE and _SIGN_OF_PASSWORD.search(value) is not None
    if not is_pair:
        is_pair = (
            _NETWORK_BEFORE_SLASH.search(text, max(0, start - LONGEST_LINE_HEAD), start) is not None
        )
        is_odd = has_digit_and_letter(value) or has_sign(value)
    is_taken = is_pair and is_odd and is_plain_value(value)
    return ((match.start(1), match.start(1) + len(value)),) if is_taken else NOTHING


def _behind_admin(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take X of `admin / X`; behind an arrow or a bar it must not be the name of a page."""
    is_page = "/" not in match["sign"] and _SIGN_OF_PASSWORD.search(match["value"]) is None
    if is_page and not _DIGIT_INSIDE.search(match["value"]):
        return NOTHING
    return _plain_beside_user(match, "value")


def _listed_beside_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take X of `host a, user b, secret X`, if it is more than a word."""
    first = max(0, match.start() - LONGEST_LINE_HEAD)
    if _NAMED_USER_BEFORE.search(match.string, first, match.start()) is None:
        return NOTHING
    value = match[1].rstrip(".,;:!?)")
    is_taken = oddity(value) >= Oddity.NUMBERED and is_plain_value(value)
    return ((match.start(1), match.start(1) + len(value)),) if is_taken else NOTHING


def _before_names(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `(user/password)` for both."""
    first = max(0, match.start() - LONGEST_LINE_HEAD)
    found = _PAIR_BEFORE.search(match.string, first, match.start())
    if found is None or not is_plain_value(found[1]) or not has_digit_and_letter(found[1]):
        return NOTHING
    return (found.span(1),)


_USED_BEFORE = re.compile(r"[用以拿][ ]?([!-~]{6,64})\Z")
_HAN_USER = re.compile(
    r"(?:用[户戶]名?|[账帐帳賬][号號户戶])[是为:： ]{0,2}[\w.@+-]{2,40}[^\n\w]{0,8}\Z"
)
_USER_BEFORE = re.compile(r"(?<![\w/])u(?:ser|n)?[:=][ ]?[\w.@+-]{1,64}\s{0,12}\Z", re.IGNORECASE)
_SIGN_OF_PASSWORD = re.compile(r"\w[!@#$%^*?~]\w")
_DIGIT_INSIDE = re.compile(r"[A-Za-z][0-9]+[A-Za-z]")
_NAME_BEFORE_SLASH = re.compile(r"[:：–—=] ?[\w.@+-]{2,40}\Z")
_NETWORK_BEFORE_SLASH = re.compile(
    r"(?:\b(?:wi-?fi|wlan|ssid|réseau|rete|rede)|无线|와이파이) [\w.@+-]{2,40}\Z", re.IGNORECASE
)
_NAMED_USER_BEFORE = re.compile(
    r"(?:user(?:name)?|login|account|benutzer|konto|usuario|cuenta|utilisateur|compte|id)[ :=]{1,2}[\w.@+-]{1,64}[^\n.]{0,24}\Z",
    re.IGNORECASE,
)
_PAIR_BEFORE = re.compile(r"(?<![\w/])[\w.@+-]{1,64}[ ]?[/:][ ]?([!-~]{4,64})[ \t]{0,4}[(（]\Z")


_PASSWORD_RULES = (
    RedactionRule(
        "labelled_password",
        ENGLISH_LABELS,
        rf"(?i){_ENGLISH_NAME}(?:(?P<from>(?=(?u:[\w \t'’@.]){{0,60}}?[ \t](?:from|von|van|de|da|från|fra|z|od|с|от|no longer|not|nicht|n['’]est plus|ya no|no es|non è|não é|niet|больше не)[ \t]+(?:mehr |meer |es |più |mais )?[\"'“‘`«]?[ ]?(?:[A-Za-z._-]{{0,32}}[0-9]|[A-Za-z]{{2,24}}[!#$%&*+@^_])))"
        rf"|(?:[ ](?:nueva|actual|temporal))?{_ASIDE}{_CLAUSE}(?>(?P<assign>{_ASSIGN}|(?<=[\"']),[ \t]{{0,16}}(?=[\"']))|(?P<prose>{_IS})"
        rf"|(?(clause)(?!)|[ \t]{{1,8}}(?:[-–—]{{1,2}}[ \t]{{1,4}}|[057][ \t])?)){_VALUE})",
        _english,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        (*_AS_PASSWORD, *_AS_HAN_PASSWORD),
        "",
        _use_as,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        tuple(map(str.lower, HAN_LABELS)),
        rf"(?P<name>{'|'.join(HAN_LABELS)})(?:(?P<from>(?=[^\n\x00-\x7f]{{0,4}}(?:[从由從自][^\n\x00-\x7f，。；“‘「]{{0,6}}[ ]?[\"'“‘`「]?[!-~]|[ ]?[\"'“「『]?[!-~]{{4,40}}[\"'”」』]?(?:から|에서))))"
        rf"|{_ASIDE}(?>(?P<assign>{_ASSIGN})|{_SPACE}{{0,4}}(?P<prose>{_HAN_IS})|{_SPACE}{{0,4}})"
        rf"(?:[A-Za-z0-9_.@-]{{2,40}}[ \t]{{0,2}}/[ \t]{{0,2}})?{_VALUE})",
        _han,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码", "密碼", "口令", "パスワード", "비밀번호"),
        r"(?:(?:(?<=解压)|(?<=压缩包)|(?<=壓縮檔)|(?<=文档)|(?<=后台)|(?<=[登开][录机]))密[码碼][是为]|(?:密[码碼]|口令|パスワード|비밀번호)[:：])[ ]?((?u:[^\W\d_A-Za-z]){2,12}[0-9]{2,8})(?=[\s，。；、]|\Z)",
        _han_and_number,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码", "密碼", "口令", "암호", "비밀번호"),
        r"(?:密[码碼]|口令|암호|비밀번호)(?:(?P<colon>[ ]?[:：][ \t]{0,2})|(?P<is>是|为|為|就是)(?=[「『“‘\"])|[ ](?=[^\x00-\x7f\s]{1,8}[@#$%^&*_!+-]))"
        r"(?P<quote>[「『“‘\"]?)(?P<value>[\u4e00-\u9fff\uac00-\ud7a3][\u4e00-\u9fff\uac00-\ud7a3@#$%^&*_!+0-9A-Za-z-]{1,19})[」』”’\"]?(?=[ \t]*(?:[\r\n(（,，。；;]|\Z))",
        _han_words,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        tuple(
            f"{name}{sign}"
            for name in ("密码", "密碼", "口令")
            for sign in (":", "：", "—", " —", "→", " →")
        ),
        r"(?:密[码碼]|口令)(?:[:：]|[ ]?(?:—{1,2}|→))[ ]?(?P<value>[\u4e00-\u9fff]{5,14})(?=[ \t]*(?:[\r\n]|[（(](?![^()（）\n]*拼)|\Z))",
        _han_sentence,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        (
            *(
                f"{name}{sign}"
                for name in ("パスワード", "合言葉", "비밀번호", "비번", "암호", "пароль")
                for sign in (":", "：", " :", " ：", "→", " →", " —", " –", " -", "=", " =")
            ),
            "пароль от вайфая:",
            "пароль от wifi:",
            "пароль от wi-fi:",
        ),
        r"(?iu:パスワード|合言葉|비밀번호|비번|암호|пароль(?: от вайфая| от wi-?fi)?)[ ]?[:：=→—–-][ 　]?"
        r"(?P<value>[\u3041-\u30ff\u4e00-\u9fff]{4,20}|(?=[\uac00-\ud7a3 ]{4})[\uac00-\ud7a3]{1,10}(?:[ ][\uac00-\ud7a3]{1,10}){0,4}|(?iu:[а-яё]{2,16}(?:[ -][а-яё]{1,16}){1,5}))(?=[ \t]*(?:[\r\n（(]|\Z))",
        _foreign_words,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        tuple(
            f"{name}{sign}"
            for name in _PHRASE_NAMES
            for sign in (":", " :", " =", "=", " →", " ->", " –", " —")
        ),
        rf"(?iu:{'|'.join(map(re.escape, _PHRASE_NAMES))})[ ]?(?:[:=→–—]|->)[ ](?P<phrase>(?u:[^\W\d_][\w'’-]{{0,19}})(?:,?[ ](?u:[^\W\d_][\w'’-]{{0,19}})){{4,9}})(?=[ \t]*(?:[\r\n]|\Z))",
        _phrase_of_thing,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        _OWN_NAMES,
        rf"(?iu:{'|'.join(_OWN_NAMES)})(?u:[ ](?:for|on|at|to|für|bei|beim|zum|zur|pour|de|du|des|sur|chez|del?|para|per|della|di|do|da|van|voor|от|для|на|till|do)(?:[ ][\w'’.-]{{1,20}}){{1,5}}?)[ ](?iu:is|was|ist|lautet|est|es|è|é|это|är|to)[ ]?:?[ ]?"
        r"[\"'“„«‘‹][ \u00a0]?(?P<phrase>(?u:\w[\w'’-]{0,19})(?:[ ](?u:\w[\w'’-]{0,19})){1,5})[.,!]?[ \u00a0]?[\"'”“»’‘›]",
        _own_phrase,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        ("密码", "密碼", "口令"),
        r"(?:密[码碼]|口令)(?!长|長|位|次|数|數|有效|期|编|編|重试|錯|错)[^\x00-\x7f\n，。；：]{1,12}[:：][ ]?([0-9]{4,12})(?![0-9.:/-])",
        _number_after_colon,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "credential_pair",
        (
            "creds:",
            "creds：",
            "credentials:",
            "credentials：",
            "credentials are ",
            "creds are ",
            "logins are ",
            "login is ",
            "login:",
            "login：",
            "auth=",
            "auth: ",
            *(name + sign for name in PAIR_NAMES for sign in (":", "：", " :", "=")),
            "/pass:",
            "/pass：",
            "/password:",
            "/password：",
            "/pwd:",
            "/pw:",
            "/口令：",
            "/口令:",
        ),
        r"(?iu:[^\n:：=]{2,24}?(?:[:：=]| are(?= )| is(?= )))[ \t]{0,4}[\w.@+-]{1,64}[ \t]?[:/／][ \t]?([!-~]{3,64}+)",
        _beside_user,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        tuple(
            f"{name}{sign}"
            for name in ("credentials", "creds", "auth", "login", "account")
            for sign in ('": [', '":[', "': [", "':[", "': (", ": [", "=(", " = (", " = [", "=[")
        ),
        r"(?i:credentials|creds|auth|login|account)[\"']?[ ]?[:=][ ]?[\[(][ ]?[\"'][\w.@+-]{1,64}[\"'],\s{0,16}[\"']([^\"'\s]{4,64})[\"']",
        _second_of_pair,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        (
            "log in with ",
            "login with ",
            "sign in with ",
            "logged in with ",
            "log in as ",
            "sign in as ",
            "log in using ",
            "log in use ",
            "login use ",
            "login as ",
        ),
        r"(?i)(?:log|sign)[a-z]{0,4}[ ]?in (?:with|as|using|use) (?:the )?[\"'`“]?[\w.@+-]{1,64}[\"'`”]?"
        r"(?: / |/| and | with |, |: |:)(?:the )?(?P<name>password )?[\"'`“]?(?P<value>[!-~]{4,64}+)",
        _stated_beside_user,
    ),
    RedactionRule(
        "credential_pair",
        _LOGGING_IN,
        rf"(?iu:{'|'.join(map(re.escape, _LOGGING_IN))})(?u:[\w.@+-]{{1,64}})[ ]?[/|:][ ]?([!-~]{{4,64}}+)",
        _beside_user,
    ),
    RedactionRule(
        "credential_pair",
        (" 登录", " 登錄", " 登入", " 登陆"),
        "[ ]登[录錄入陆](?!名|页|頁|用)",
        _used_to_log_in,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        (
            "登录用",
            "登錄用",
            "登陆用",
            "登入用",
            "账号密码",
            "帐号密码",
            "帳號密碼",
            "账户密码",
            "用户名密码",
            "账密",
        ),
        r"(?:登[录錄陆入]用|[账帐帳賬用][号號户戶密]名?(?:密[码碼])?)[是为:：]?[ \t]{0,4}[\w.@+-]{1,64}[ ]?[/:][ ]?([!-~]{4,64}+)",
        _beside_user,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        (" p: ", "\np:", " p:", " p=", ",p:", ",p=", "/p:", ";p:"),
        r"[ ,;/\n][pP][:=][ ]?([!-~]{4,64}+)",
        _after_user,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        (
            ", secret ",
            ", token ",
            ", key ",
            ", and secret ",
            " and secret ",
            ", schlüssel ",
            ", clave ",
            ", clé ",
        ),
        r"(?iu:,? (?:and )?(?:secret|token|key|schlüssel|clave|clé)) ([!-~]{5,64}+)",
        _listed_beside_user,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        tuple(
            f"{user}{sign}"
            for user in ("admin", "root", "administrator")
            for sign in (" / ", "/", " → ", " -> ", " | ")
        ),
        r"(?i)(?:admin|root|administrator)(?P<sign>[ ]?/[ ]?| (?:→|->|\|) )(?P<value>[!-.0-~]{5,64}+)(?=[\s，。；、]|\Z)",
        _behind_admin,
    ),
    RedactionRule(
        "credential_pair",
        (" / ", " – ", " — "),
        r" [/–—] ([!-.0-~]{8,64}+)(?=[.,;)]?[ \t]*(?:[\r\n(（]|\Z))",
        _behind_slash,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        ("username/password", "user/pass", "login/pass", "用户名/密码", "账号/密码"),
        "(?i)user(?:name)?/pass(?:word)?|login/pass(?:word)?|(?:用户名|账号)/密码",
        _before_names,
        bounded=False,
    ),
)


_AGREED = ("设的", "設的", "约定的", "約定的", "定的", "说好的", "對的", "对的", "用的", "留的")


def _mixed_letters(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a value of Chinese or Korean letters and others, as no sentence has them: `文库2024pg`."""
    value = re.split(r"[,;](?=[^\x00-\x7f])", match["value"])[0].rstrip(",;.")
    if match["verb"] and not re.search("[!-~]\\Z", value):
        return NOTHING
    odd = re.search(r"[0-9]", value) and re.search("[A-Za-z_@#$%&*!+-]", value)
    if not odd and match["setting"] is None:
        return NOTHING
    is_count = value[0].isdigit() and _COUNTS.search(value) is not None
    if is_latin(value) or is_count or not re.search("[0-9A-Za-z@#$%&*!_+-]", value):
        return NOTHING
    is_other = _HAN_BLANK.match(value) or is_stand_in(value)
    first = match.start("value")
    return NOTHING if is_other else ((first, first + len(value)),)


def _short_label(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a mere 密:, where no other Han letter stands before it."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    is_label = not before or before in " \t\n，,；;、/|　"
    value = trim_bare(match[1], in_query=False)
    is_taken = (
        is_label
        and is_plain_value(value)
        and (value.isdigit() or has_digit_and_letter(value) or has_sign(value))
    )
    return ((match.start(1), match.start(1) + len(value)),) if is_taken else NOTHING


def _kept_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take Han words that the text asks to keep from others: 密码是…，别告诉外人."""
    is_told = match["spelt"] is None and "的" in match[1]
    is_told = (
        is_told
        or is_remark_han(match[1])
        or "名" in match[1]
        or _HAN_BLANK.search(match[1]) is not None
    )
    return NOTHING if is_told else (match.span(1),)


def _counted_signs(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a password described by a sign and its count: 六个八, 八个8加haitang."""
    return (match.span(1),)


def _agreed_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take quoted words that the text says somebody chose: 我们设的口令是“…”."""
    is_agreed = match.string.endswith(_AGREED, max(0, match.start() - 8), match.start())
    return (match.span(1),) if is_agreed else NOTHING


_CHINESE_RULES = (
    RedactionRule(
        "labelled_password",
        (
            "password",
            "passwd",
            "passphrase",
            "_pass",
            "pwd",
            "密码",
            "密碼",
            "口令",
            "密钥",
            "密鑰",
            "パスワード",
            "パスフレーズ",
            "비밀번호",
            "비번",
            "암호",
            "패스프레이즈",
            "пароль",
        ),
        r"(?:(?P<setting>(?iu:password|passwd|passphrase|pass|pwd|비밀번호|密码|密碼|口令)=)|(?iu:password|passwd|passphrase|_pass|pwd|密[码碼钥鑰]|口令|パスワード|パスフレーズ|비밀번호|비번|암호|패스프레이즈|пароль)"
        r"(?:[ \t]?[:：=→][ \t]{0,2}|(?P<verb>(?:是|为|為|改成|改为|换成)[ ]?)))[\"'“「]?(?=[!-~]{0,24}[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3])"
        r"(?P<value>[!-~\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{4,32}?)(?=[\"'”」]?(?:[\s，。；、（(]|\Z))",
        _mixed_letters,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码", "密碼", "口令"),
        r"(?:密[码碼]|口令)(?:就?是|为|[:：])?[ ]?((?:[一二两三四五六七八1-8]个[0-9零一二三四五六七八九a-zA-Z](?:加|和|再加)?){1,4}(?:[!-~]{1,24})?)(?=[\s，。；！（(]|\Z)",
        _counted_signs,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密:", "密：", " 码:", " 码："),
        r"(?:密|[ ]码)[:：][ ]?([!-~]{4,64}+)",
        _short_label,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        ("密码是", "密碼是", "口令是", "密码就是", "密码：", "密码:"),
        r"(?:密[码碼]|口令)(?:就?是|[:：])([\u4e00-\u9fff]{3,14})[，,。！! ]{1,2}(?P<spelt>(?:不[带加要含]|没有?|無|无|去掉|中间[没不]\w?)(?:标点|標點|空格|符号|符號|引号)|连写|連寫|一共\w字|[全都]是?(?:汉字|漢字|中文|小写|大写|拼音)|汉字|漢字|拼音)?(?(spelt)|(?:请?别(?:告诉|外传|往外|跟|给|传|发)|不要(?:告诉|外传|传)|请勿(?:外传|转发)|保密|记牢|记好|千万别|全拼|汉字|中文))",
        _kept_words,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码是", "密碼是", "口令是", "暗语是", "暗語是", "暗号是"),
        r"(?:密[码碼]|口令|暗[语語号])(?:就)?是[ ]?[“「『\"]([^“”「」『』\"\n]{4,24})[”」』\"]",
        _agreed_words,
        bounded=False,
    ),
)

RULES = (*_CHINESE_RULES, *_PASSWORD_RULES)
