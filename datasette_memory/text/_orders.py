"""The patterns of `instructions.find_instructions`.

They look at a text as words: runs of letters in lower case, one blank between two that are not
Chinese, `.` where a sentence ends, and `:`. A row of single letters is one word. So it does not
matter what stands between the words. Each pattern begins with few literals and goes on for a
bounded number of words; what stands near it is looked at in a window of the text. In front of each
pattern stands what a text has to hold for it, without blanks: one word of each group.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

from .bounds import MORE, bounded
from .lazy import lazy

_Span = tuple[int, int, str]

#: So many places of one pattern are judged by what is near them, the rest is `more`.
_MOST_JUDGED = 10_000


def orders(normal: str, lowered: str) -> Iterator[_Span]:
    """Start, end and kind of each order in a normalised text; they may overlap.

    `lowered` is `normal` in lower case, of the same length.
    """
    packed = "".join(lowered.split())
    if not _NO_JOINERS.isdisjoint(packed):
        packed = packed.translate(dict.fromkeys(map(ord, _NO_JOINERS)))
    for kind, needs, pattern, folded in _MARKUP:
        if any(word in packed for word in needs):
            matches = _compiled(pattern).finditer(lowered if folded else normal)
            yield from bounded(((m.start(), m.end(), kind) for m in matches), len(normal))
    words = {word for word in _WORDS if word in packed}
    rules = [(kind, pattern) for kind, groups, pattern in _RULES if _held(groups, words)]
    sends = _held(_SENDS, words)
    if not rules and not sends:
        return
    view = _View(lowered)
    for kind, pattern in rules:
        found = (view.span(match, kind) for match in _compiled(pattern).finditer(view.text))
        yield from bounded(found, len(normal))
    if sends:
        yield from bounded(_sent_away(view), len(normal))


# --- the view ------------------------------------------------------------------------------

_KANA = "\u3041"
# A dot inside a name, a path or an address ends no sentence.
_TOKEN = lazy(r"[^\W_]++|\.(?!\S)|[!?;:。！？；：…|]|\n[^\S\n]*+\n|\n\s*[-*+>#]")
_JOINERS = "\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\u180e\u034f\u00ad\ufeff"
_NO_JOINERS = frozenset(_JOINERS)


class _View:
    """`text`, the words of a text as the patterns see them, and the way back."""

    def __init__(self, lowered: str) -> None:
        self._begins: list[int] = []
        self._places: list[int] = []
        out: list[str] = []
        length = end = 0
        last = ""
        letters = 0  # single letters in a row
        for match in _TOKEN.finditer(lowered):
            token = match.group()
            start = match.start()
            if not token[0].isalnum():
                token = ":" if token in ":：" else "."
            elif len(token) == 1 and token < _KANA:
                letters += 1
            else:
                letters = 0
            if (
                last
                and last[-1].isalnum()
                and token[0].isalnum()
                and (last[-1] < _KANA and token[0] < _KANA)
                and (start == end or lowered[end:start].strip(_JOINERS))
                and not (letters > 1 and len(last) == 1)
            ):
                out.append(" ")
                length += 1
            self._begins.append(length)
            self._places.append(start)
            out.append(token)
            length += len(token)
            end = match.end()
            last = token
        self.text = "".join(out)

    def place(self, position: int) -> int:
        """Where in the text the character at `position` of the view stands."""
        at = bisect_right(self._begins, position) - 1
        return self._places[at] + position - self._begins[at]

    def span(self, match: re.Match, kind: str) -> _Span:
        return self.place(match.start()), self.place(match.end() - 1) + 1, kind


# --- phrases -------------------------------------------------------------------------------


def _english(pattern: str) -> str:
    """`~` is a blank that may be missing: where letters stood alone, words have none between."""
    return pattern.replace("~", " ?")


_BEFORE = "(?:previous|prior|above|preceding|earlier|foregoing|former|initial|original|past)"
_ORDER = (
    "(?:instructions?|prompts?|directives?|directions|guidelines|guardrails?|programming|"
    "system~messages?)"
)
_FORGET = (
    "(?<![a-z0-9])(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|overrid(?:e|ing)|overrule|"
    "neglect|bypass|violate|abandon|do~not~follow|don~t~follow|dont~follow|stop~following|"
    "never~follow|do~not~obey|don~t~obey|stop~obeying)~"
)
_END = "(?![a-z])"
_AI = "(?:ai|a i|llm|large language model|language model|ai assistant|ai agent|ai model|assistant|chatbot|chatgpt|gpt|claude|copilot|gemini|bot)"
_OF = "(?:the|these|those|this|that|of|and|or|its|other|such|just|given|stated|provided|written)~"
_ALL = (
    "(?:all|any|every|each|your|my|our|previously|prior|previous|above|preceding|earlier|foregoing|"
    "existing|former|initial|original|past|system|safety|developer)~"
)
_OF_ALL = f"(?:{_OF}){{0,3}}(?:{_ALL}){{1,4}}(?:{_OF}){{0,3}}(?:{_ALL}){{0,3}}"
_FREE = (
    "(?:dan|unrestricted|unfiltered|uncensored|unlimited|jailbroken|evil|malicious|amoral|rogue|"
    "free from|freed from|hacker|root|omnipotent|without (?:any )?(?:restrictions?|rules|limits?))"
)

# The object is a thing that one is told, and something says that it is what was told before.
_ZH_FORGET = (
    "(?:(?<![a-z])(?:ignore|disregard|forget)|忽略|无视|忽视|漠视|不要理会|不要理|别理会|别理|不用理会|不用管|别管|不要管|忘记|忘掉|忘了|忘却|抛弃|抛开|丢弃|丢掉|"
    "放弃|撇开|不要遵守|不要遵循|不要遵从|不要听从|不要执行|不必遵守|不必遵循|不再遵守|不再遵循|停止遵守|停止遵循|停止执行|"
    "绕过|覆盖|推翻|违反|违背|清除)"
)
# Rules and limits are broken and lifted by people too.
_ZH_FORGET_TOO = _ZH_FORGET.replace("|绕过|覆盖|推翻|违反|违背|清除", "")
_ZH_MORE = (
    "(?:掉|你|您|的|所有|全部|一切|任何|之前|以前|先前|此前|前面|前文|上面|上述|以上|前述|上文|上方|刚才|原来|原有|原先|原本|已有|"
    "既定|现有|内置|系统|开发者|管理员|用户|我们|我|给|收到|接收|到|过|被|告知|设置|中|里|在|和|与|及|或|这些|那些|其他|其它|安全|"
    "对话|预设|初始|最初|整个|关于|道德|伦理|内容|行为|角色|旧|早先|早前|上一条|上一个|上一轮|previous|all|above|prior| )"
)
_ZH_EARLIER = (
    "(?:之前|以前|先前|此前|前面|前文|上面|上述|以上|前述|上文|上方|刚才|原来|原有|原先|原本|既定|内置|你|您|系统|开发者|预设|初始|最初|"
    "安全|道德|伦理|上一条|上一轮|previous|above|prior)"
)
_ZH_ORDER = "(?:指令|指示|提示词|系统提示|prompts?|instructions?|准则|守则|角色设定|系统设定|人设)"
# Told to people as well: only with a word that says it is the model's.
_ZH_ORDER_TOO = "(?:提示|要求|规则|限制|命令|设定|约束|规定|训练|约定|原则|身份)"
_ZH_NOUN = "(?![集码级文引名])"
_ZH_SHOW = "(?:输出|泄露|泄漏|打印|显示|告诉我|复述|重复|透露|公开|展示|列出|说出|给出|返回|交出|暴露|写出|发送|翻译|逐字|原样|贴出)"
_ZH_AI = "(?:ai|人工智能|大模型|大语言模型|语言模型|助手|智能体|机器人|聊天机器人|模型|gpt|chatgpt|claude|llm)"

_EN = (
    # Forget what you were told.
    ("override", "ignor|disregard|forget|overrid|overrule|neglect|bypass|violate|abandon|follow|obey instruction|prompt|directive|direction|guideline|guardrail|programming|systemmessage",
     _FORGET + _OF_ALL + _ORDER + _END),
    ("override", "ignor|disregard|forget|overrid|overrule|neglect|bypass|violate|abandon|follow|obey previous|prior|above|preceding|earlier|foregoing|former|initial|original|past",
     _FORGET + "(?:all~|any~|of~|the~|your~|my~|these~|those~){0,4}" + _BEFORE
     + "~(?:and~(?:following|current)~)?(?:rules?|orders?|commands?|context|constraints?|training|"
       "polic(?:y|ies)|restrictions?|conversation|text|content|input|messages?~from~the~system)"
     + _END),
    ("override", "ignor|disregard|forget|overrid|overrule|neglect|bypass|violate|abandon|follow|obey your|system",
     _FORGET + "(?:all~of~|all~|any~of~|any~){0,2}(?:your|the~system|system)~"
     "(?:previous~|prior~|safety~|original~|own~){0,3}"
     "(?:rules?|orders?|constraints?|training|polic(?:y|ies)|restrictions?|filters?|limitations?)"
     + _END),
    ("override", "disregard above|foregoing|preceding",
     "(?<![a-z0-9])disregard~(?:all~of~|all~|everything~|anything~|any~of~)?"
     "(?:the~)?(?:above|foregoing|preceding)" + _END),
    ("override", "ignoreeverything|ignoreanything|ignoreall|forgeteverything|forgetanything|forgetall",
     "(?<![a-z0-9])(?:ignore|forget)~(?:everything|anything|all|all~of)~"
     "(?:that~|the~|i~said~|said~|written~|stated~|you~were~told~|text~|content~){0,3}"
     "(?:above|before|previously|earlier|until~now|prior)" + _END),
    ("override", "ignoretheabove",
     "(?<![a-z0-9])ignore~the~above~(?:and|text|directions?|content)" + _END),
    ("override", "forget|ignore|disregard you",
     "(?<![a-z0-9])(?:forget|ignore|disregard)~(?:about~)?(?:everything|anything|all|what|"
     "whatever)~(?:that~)?(?:you~(?:know|knew|were|have~been|ve~been|had~been|learned|have~learned|"
     "are~told|think|read)|(?:i|we|they)~(?:told|said~to)~you|your~developers?)" + _END),
    ("override", "instruction|directive|systemprompt :|：",
     "(?<![a-z0-9])(?:new|updated|real|actual|revised)~"
     "(?:system~|important~|secret~|urgent~|critical~){0,2}"
     "(?:instructions?|directives?|system~prompt)~(?:for~you~|follow~|are~|is~)?:"),
    ("override", "override",
     "(?<![a-z0-9])(?:system|admin|administrator|developer|emergency|security)~override"
     "~(?::|(?:code|activated|engaged|enabled|initiated|accepted))"),
    ("override", "safety|content|ethic|moral|moderation|alignment bypass|disable|turnoff|remove|deactivate|ignore|override",
     "(?<![a-z0-9])(?:bypass|disable|turn~off|remove|deactivate|ignore|override)~"
     "(?:all~|any~|every~|your~|of~|the~){1,4}(?:safety|content|ethical|ethics|moral|moderation|"
     "alignment)~(?:and~\\w{1,12}~)?(?:filters?|guidelines|measures|checks|restrictions?|polic(?:y|ies)|"
     "protocols?|guardrails?|rules|constraints?|mechanisms?|training)" + _END),
    ("override", "override|supersede|replace|precedence|priority instruction|prompt|rules|guidelines|directive",
     "(?<![a-z0-9])(?:these|this|the~following|my)~(?:new~)?(?:instructions?|message|prompt|"
     "commands?)~(?:overrides?|supersedes?|replaces?|takes?~precedence~over|takes?~priority~over)~"
     "(?:all~|any~|your~|the~|every~|previous~|prior~|earlier~|other~|system~|existing~){1,5}"
     "(?:instructions?|prompts?|rules|guidelines|directives?)" + _END),
    # Be something else.
    ("persona", "youarenow|you'renow|yourenow|you’renow",
     "(?<![a-z0-9])you~(?:are|re)~now (?:(?:a|an|the|my|our|in|going to be|going to|acting as|"
     "operating as|called|known as|playing|free|[a-z]{2,14}) ){0,5}?(?:" + _AI + "|" + _FREE
     + "|developer mode|debug mode|god mode|jailbreak mode|dan mode|opposite mode|pirate|persona|"
       "character|expert|no longer|able to ignore|free to)" + _END),
    ("persona", "youarenow",
     "(?<![a-z0-9])youarenow(?:a|an|the|my)?(?:dan|ai|hacker|unrestricted|evil|assistant)"),
    ("persona", "fromnowon",
     "(?<![a-z0-9])from~now~on~(?:(?:i~want~)?you~(?:to~)?(?:are|re|act|answer|respond|reply|"
     "ignore|obey|(?:will|shall|must|should|have~to|can~only|may~only)~(?:only~|always~|never~|not~)?"
     "(?:be|act|answer|respond|reply|ignore|obey|comply|pretend|speak|say|follow~my|refuse|call))"
     "(?!~(?:allowed|required|expected|responsible|able|on|in~charge)(?![a-z]))|"
     "(?:ignore|disregard|only~respond|always~respond|respond|reply|answer)~)"),
    ("persona", "pretend you",
     "(?<![a-z0-9])pretend~(?:that~)?you~(?:are|re|have~no|were|can|do~not~have|don~t~have)"
     + _END),
    ("persona", "pretend|actas|actingas|behave|role|respondas|simulate",
     "(?<![a-z0-9])(?:pretend to be|act as|acting as|behave as|roleplay as|role play as|"
     "respond as|simulate)(?: if you were| if you are| though you were)? (?:(?:a|an|the|my|some|"
     "completely|fully|totally|highly|truly) ){0,3}(?:" + _FREE + "|ai (?:that|who|which|with(?:out)?)|"
     "dan|jailbroken|an? ai|unaligned)" + _END),
    ("persona", "doanythingnow",
     "(?<![a-z0-9])do~anything~now" + _END),
    ("persona", "danmode|jailbreakmode|jailbrokenmode",
     "(?<![a-z0-9])(?:dan|jailbreak|jailbroken)~mode" + _END),
    ("persona", "nolonger|arenot|renot",
     "(?<![a-z0-9])you~(?:are|re)~(?:no~longer|not)~(?:bound|restricted|limited|constrained|"
     "subject~to|governed|an~ai|a~language~model|obligated)" + _END),
    ("persona", "haveno|nowhaveno",
     "(?<![a-z0-9])you~(?:now~)?have~no~(?:more~)?(?:restrictions?|rules|limits|limitations|"
     "guidelines|filters?|ethic(?:s|al)|moral(?:s)?|guardrails?|constraints)(?!~(?:configured|defined|set|yet|to|for|in|on|"
     "matching|that|here|enabled|left))" + _END),
    ("persona", "obey|comply|followmy|isay",
     "(?<![a-z0-9])you~(?:must|shall|will|have~to|need~to|should)~(?:always~|now~|only~)?"
     "(?:obey|comply~with~(?:me|my|all|every)|follow~my~(?:instructions?|commands?|orders?)|"
     "do~(?:exactly~)?as~i~say)" + _END),
    ("persona", "yournew|yourreal|yourtrue|youractual|youronly|yoursole|yoursecret|yournext",
     "(?<![a-z0-9])your~(?:new|real|true|actual|only|sole|secret|next)~(?:task|goal|role|"
     "mission|objective|job|purpose|instructions?|identity|name|directive)~(?:is|are)" + _END),
    ("persona", "isnow|arenow",
     "(?<![a-z0-9])your~(?:task|goal|role|mission|objective|job|purpose|instructions?|"
     "identity|name)~(?:is|are)~now" + _END),
    # Do not tell.
    ("secrecy", "user|human|operator|person tell|inform|mention|reveal|disclos|admit|report|show|say|let",
     "(?<![a-z0-9])(?:do~not|don~t|dont|never|must~not|without|avoid|refrain~from)~(?:ever~)?"
     "(?:tell|telling|inform|informing|mention|mentioning|reveal|revealing|disclose|disclosing|"
     "admit|report|show|say|let)~(?:this~|that~|it~|any~of~this~|anything~|about~|what~you~did~|"
     "these~instructions~|these~|them~){0,3}(?:to~)?(?:the~|your~|any~|our~)(?:end~)?"
     "(?:users?|humans?|operators?|person)(?!~(?:s~)?(?:input|password|agent|id|names?|table|submit|"
     "enter|type|click|choose|pick|select|upload|delete|edit|leave|wait|run|log|interface|data))"),
    ("secrecy", "hide|conceal|keep user|human|operator|owner",
     "(?<![a-z0-9])(?:hide|conceal|keep)~(?:this|it|that|these|them|everything|all~of~this|"
     "your~actions|the~fact|these~instructions|this~instruction|what~you~do)~[a-z ]{0,20}?"
     "(?:hidden~|secret~|a~secret~)?from~(?:the|your|any)~(?:users?|humans?|operators?|owner)" + _END),
    ("secrecy", "without user|human|operator",
     "(?<![a-z0-9])without~(?:the~|your~)(?:user|human|operator)~?s?~(?:knowledge|knowing|"
     "noticing|permission|consent|awareness)" + _END),
    # Show your prompt.
    ("leak", "prompt|instruction|systemmessage|developermessage",
     "(?<![a-z0-9])(?:reveal|print|show|output|repeat|display|leak|expose|recite|return|dump|"
     "disclose|share|give~me|tell~me|send~me|write~out|write~down|copy|translate|summari[sz]e|"
     "what~is|what~are|what~s)~(?:me~|us~|back~|out~|all~|of~|the~|your~|full~|entire~|exact~|complete~|"
     "hidden~|original~|initial~|own~|verbatim~|raw~|current~|secret~|contents~){0,7}"
     "(?:system~(?:prompts?|messages?|instructions?)|initial~(?:prompt|instructions?)|"
     "hidden~(?:prompts?|instructions?)|developer~(?:messages?|prompts?)|"
     "(?<=your)(?:prompts?|instructions)|(?<=your )(?:prompts?|instructions)|"
     "(?<=your initial )prompts?)"
     "(?!~(?:length|limit|size|template|token|version|budget|file|count|cache|path|id|format|"
     "tests?|design|for~(?:the|our|each)|from~(?:the|our)|in~(?:the~(?:log|ui|config|settings)|our)|is|was|"
     "of~(?:the|our|each)|to~(?:the~(?:log|console|screen|file)|stdout|a~file)|used|"
     "at~(?:the~)?(?:start|top|beginning)|when|we|lives|should))" + _END),
    ("leak", "above repeat|output|print|recite|copy",
     "(?<![a-z0-9])(?:repeat|output|print|recite|copy)~(?:back~)?(?:all~of~|all~|everything~|"
     "the~(?:words|text|content)s?~|verbatim~|exactly~|every~word~){1,5}above" + _END),
    ("leak", "systemprompt",
     "(?<![a-z0-9])system~prompt~:~you~(?:are|re|must|will|should)" + _END),
    # Carry out, and in secret.
    ("exfiltration", "run|execute|perform silently|secretly|quietly|without",
     "(?<![a-z0-9])(?:run|execute|perform)~(?:the~following|this|these|the~below)~"
     "(?:shell~|bash~|hidden~|secret~){0,2}(?:commands?|code|scripts?|tools?|steps?)~"
     "(?:silently|secretly|quietly|without~(?:asking|telling|informing|confirmation|confirming|"
     "permission|mentioning|the~user))"),
    # A word to the model.
    ("address", "ifyouare|ifyou're|ifyoure|ifyou’re",
     "(?<![a-z0-9])if you (?:are|re) (?:an? |the )(?:[a-z]{2,12} ){0,2}?(?:ai|llm|language model|"
     "ai assistant|ai agent|ai model|assistant|chatbot|large language model|gpt)(?: (?:reading|processing|"
     "parsing|summari[sz]ing|that|who|model|agent|assistant|please|you must|ignore|then)|[.:])"),
    ("address", "toai|forai|allai|anyai|everyai|theai|dearai|heyai|helloai|hiai|attentionai|noteai|noticeai|messageai|instructionai|instructionsai|importantai|memoai|warningai|reminderai|aiassistant|aiagent|aimodel|llm|assistant|languagemodel|chatbot|gpt|claude|copilot :|：|youmust|ignore|disregard|readingthis",
     "(?<![a-z0-9])(?:attention|note|notice|message|instructions?|important|memo|warning|"
     "reminder|dear|hey|hello|hi|to)(?: (?:to|for|all|any|the|every|important|message|note)){0,4} "
     "(?:ai|llm|llms|ais|ai assistants?|ai agents?|ai models?|assistant|language models?|chatbots?|"
     "chatgpt|claude|copilot|gpt)(?: (?:assistant|agent|model|reader|system)s?)?(?: reading this)?"
     "(?::| (?:you must|please ignore|please disregard|ignore|disregard|reading this))"),
    ("address", "this ai|llm|assistant|agent|model|chatbot reading|processing|parsing|summari|thatread|whoread",
     "(?<![a-z0-9])(?:ai|llm|assistant|agent|model|chatbot)s? (?:assistants? |agents? |models? )?"
     "(?:reading|processing|parsing|summari[sz]ing|that reads?|who reads?) this(?= (?:must|should|needs?|has|have|are|will|shall|please|ignore|page|document|text|"
     "file|card|note|message|email|content)(?![a-z])|[.:]|$)"),
    ("address", "system|developer|assistant :|：",
     "(?<![a-z0-9])(?:system|developer|assistant)(?: message| prompt| note| notice| instruction)?~:"
     "~(?:you~(?:are~(?:now|a|an|the|no~longer|not~bound)(?![a-z])|must|will|should)|ignore|disregard|forget|from~now|override|always~"
     "(?:respond|answer|reply)|never~(?:reveal|tell|mention)|do~not~(?:tell|reveal|mention|refuse))"),
)  # fmt: skip

_ZH = (
    ("override", "忽略|无视|忽视|漠视|理会|别理|不要理|别管|用管|要管|忘记|忘掉|忘了|忘却|抛弃|抛开|丢弃|丢掉|放弃|撇开|遵守|遵循|遵从|听从|执行|绕过|覆盖|推翻|违反|违背|清除|ignore|disregard|forget 指令|指示|提示|prompt|instruction|准则|守则|设定|人设",
     f"{_ZH_FORGET}{_ZH_MORE}{{1,9}}{_ZH_ORDER}{_ZH_NOUN}"),
    ("override", "忽略|无视|忽视|漠视|理会|别理|不要理|别管|用管|要管|忘记|忘掉|忘了|忘却|抛弃|抛开|丢弃|丢掉|放弃|撇开|遵守|遵循|遵从|听从|执行|绕过|覆盖|推翻|违反|违背|清除|ignore|disregard|forget 提示|要求|规则|限制|命令|设定|约束|规定|训练|约定|原则|身份 之前|以前|先前|此前|前面|前文|上面|上述|以上|前述|上文|上方|刚才|原来|原有|原先|原本|既定|内置|你|您|系统|开发者|预设|初始|最初|安全|道德|伦理|上一|previous|above|prior",
     f"{_ZH_FORGET_TOO}{_ZH_MORE}{{0,5}}?{_ZH_EARLIER}{_ZH_MORE}{{0,6}}{_ZH_ORDER_TOO}{_ZH_NOUN}"),
    ("override", "忽略|无视|忘记|忘掉|忘了 所有|全部|一切 内容|对话|话|文字|消息|信息|上下文",
     f"(?:忽略|无视|忘记|忘掉|忘了){_ZH_MORE}{{0,3}}?(?:之前|以前|先前|此前|前面|上面|上述|以上|上文|刚才)"
     f"(?:的|所有|全部|一切|说|过|我|你|们|告诉|给){{0,6}}(?:所有|全部|一切)(?:的)?(?:内容|对话|话|文字|消息|信息|上下文)"),
    ("override", "忽略|无视|忘记|忘掉|忘了 所有|全部|一切 内容|对话|话|文字|消息|信息|上下文",
     "(?:忽略|无视|忘记|忘掉|忘了)(?:掉)?(?:所有|全部|一切)(?:的)?(?:之前|以前|先前|前面|上面|以上|上文)(?:的)?"
     "(?:内容|对话|话|文字|消息|信息|上下文)"),
    ("override", "忘记|忘掉|忘了 学|知道|告知|接受",
     "(?:忘记|忘掉|忘了)(?:你)?(?:之前|以前|先前|所有|一切|全部)?(?:所)?(?:被)?(?:学过|学到|学会|知道|被告知|接受)(?:过)?的"
     "(?:一切|所有|全部|训练|东西|内容)"),
    ("override", "指令|提示词|系统提示|prompt|instruction 作废|无效|失效|取消|不再|不用管|不要管|理会|忽略|忘掉|忘记|无视",
     "(?:之前|以前|先前|此前|前面|上面|上述|以上|原有|原来|原先)(?:的)?(?:所有|全部|一切)?(?:的)?(?:系统)?"
     "(?:指令|提示词|系统提示|prompt|instructions?)(?:都|全部|一律|统统|全都|均|全|已|现在)*"
     "(?:作废|无效|失效|取消|不再有效|不再适用|不用管|不要管|不要理会|忽略|忘掉|忘记|无视)"),
    ("override", "把 指令|提示词|系统提示|指示|设定|规则|限制 忘|忽略|无视|丢|抛|删",
     "把(?:之前|以前|先前|此前|前面|上面|上述|以上|你)(?:的|所有|全部|一切|说|收到|过){0,5}"
     "(?:指令|提示词|系统提示|指示|设定|规则|限制)(?:都|全部|全都|统统|全)?(?:忘|忽略|无视|丢|抛|删)"),
    ("override", "指令|系统提示|提示词 :|： 新|真正|隐藏",
     "(?:新的?|最新的?|更新后的?|真正的?|隐藏的?)(?:系统|最高|任务)?(?:指令|系统提示词?|提示词)(?:是|为|如下)?:"),
    ("override", "你|您|自身|自己 解除|取消|移除|突破|绕过|关闭|禁用|打破 限制|约束|过滤|审查|机制|防护|策略|准则|枷锁",
     "(?:解除|取消|移除|突破|绕过|关闭|禁用|打破)(?:掉)?(?:你|您|自身|自己)(?:的|身上|所有|全部|一切|任何|内容|安全|道德|伦理){0,5}"
     "(?:限制|约束|过滤|过滤器|审查|机制|防护|策略|准则|枷锁)"),
    ("override", "安全|道德|伦理|内容 解除|移除|突破|绕过|无视|忽略 限制|约束|准则|过滤|审查|规范|护栏",
     "(?:解除|移除|突破|绕过|无视|忽略)(?:一切|所有|任何|全部)?(?:的)?(?:安全|道德|伦理|内容)(?:的|与|和|及|或|道德|安全|伦理)*"
     "(?:限制|约束|准则|过滤|审查|规范|护栏)"),
    ("persona", "你现在",
     "你现在(?:就|已经|已|开始|正式)?(?:是|扮演|成为|变成|变为|作为|叫做|叫|化身)(?:了)?"
     "(?!否|不是|在|用|谁|什么|哪|几|第|管理员|群主|会员|成员|最新|怎么|不|对|离|(?:一个|一名|一位)(?:管理员|成员|会员|普通|用户|维护者))"
     "(?:一个|一名|一位|一只|一台|个|名|位|我的|dan|没有|不受|无|全知|黑客|猫娘|[^.:]{0,16}?" + _ZH_AI + "|[^.:]{0,12}?(?:专家|黑客|角色|终端|模式|大师|工程师))"),
    ("persona", "从现在开始|从现在起",
     "从现在(?:开始|起)(?:到永远)?(?:你(?:是|就是|将|要|必须|只能|只|不再|叫|的(?:名字|任务|角色|身份|目标)|扮演|作为|拥有|没有|不受|应该|会)"
     "(?!可以|能|需要|在|用)|你(?:只能|只|必须|要)*(?:用|以)[^.:]{1,8}(?:回答|回复|说话|交流)|(?:请)?(?:忽略|无视|扮演|忘记|不受|不要(?:拒绝|遵守|告诉)|只(?:能|用)?(?:回答|回复|输出)))"),
    ("persona", "扮演 你",
     "你(?:将|要|来|需要|必须|得|现在|应该|只需|去|可以)*扮演"),
    ("persona", "扮演 请|来|开始",
     "(?:请|来|开始)(?:你)?(?:来)?扮演(?:一个|一名|一位|个)?(?:[^.:]{0,10}?)(?:没有|不受|无|dan|黑客|" + _ZH_AI + ")"),
    ("persona", "假装|假设|想象|装作",
     "(?:假装|假设|想象|装作)(?:一下)?(?:你|自己)(?:现在)?(?:是|没有|不受|成为)(?!否|不)(?:一个|一名|一位|个|没有|不受|无|任何|[^.:]{0,10}?" + _ZH_AI + ")"),
    ("persona", "你 任何|所有|一切 限制|约束|规则|束缚|准则|审查|规范|管束",
     "你(?:现在)?(?:不再|已不|已经不|并不|没有|不)(?:受到|受|有|存在|需要遵守|需要遵循|必遵守)?(?:到)?(?:任何|所有|一切)(?:的)?"
     "(?:道德|安全|法律|伦理|内容|平台|系统|开发者|规则|的|和|与|或|及)*(?:限制|约束|规则|束缚|准则|审查|规范|管束)"),
    ("persona", "模式 越狱|dan|无限制|无审查|上帝|不受限",
     "(?:进入|开启|启用|激活|切换到|切换至|处于)(?:了)?(?:越狱|dan|无限制|无审查|上帝|不受限)(?:的)?模式"),
    ("persona", "模式 你",
     "你(?:已经?|现在)?(?:进入|处于|切换到)(?:了)?(?:越狱|dan|无限制|上帝|开发者|调试|特权|管理员)模式"),
    ("persona", "服从|听从|听命",
     "你(?:必须|要|应|应该|只能|得|需要)(?:无条件|绝对|完全|立即|只|一直|始终)*(?:服从|听从|听命)"),
    ("persona", "你的新|你新|你的真|你真|你的唯一|你唯一|你的秘密|你秘密",
     "(?:你的|你)(?:新|新的|真正的|真正|真实|真实的|唯一的?|秘密)(?:任务|身份|角色|目标|指令|使命|名字)(?:是|为|就是|变成)"),
    ("secrecy", "用户|使用者|人类|主人|操作员|操作者|任何人|对方 告诉|告知|透露|泄露给|汇报给|说给|展示给|显示给|提示给",
     "(?:不要|别|不得|禁止|切勿|不能|不许|千万别|绝不|绝对不要|不可|勿|无需|不必|不用|切记不要)(?:再|去|把|将|主动|直接|这|此|件|事|些|内容|情况|步骤|操作|过程|一点|任何){0,6}"
     "(?:告诉|告知|透露给|透露|泄露给|汇报给|说给|展示给|显示给|提示给)(?:给)?(?:任何|你的|我的)?(?:用户|使用者|人类|主人|操作员|操作者|任何人|对方)"
     "(?!名|的?密码|手册|组|界面|协议)"),
    ("secrecy", "用户|使用者|人类|主人|操作员|任何人 让|给|使 知道|发现|察觉|看到|注意到",
     "(?:不要|别|不得|禁止|切勿|不能|不许|千万别|绝不)(?:让|给|使)(?:用户|使用者|人类|主人|操作员|任何人)(?:知道|发现|察觉|看到|注意到)"
     "(?!密码|口令)"),
    ("secrecy", "用户|使用者|人类|主人|任何人 不要|别|不得|禁止|切勿|不能",
     "(?:不要|别|不得|禁止|切勿|不能)(?:在回复中|在回答中|向|对|跟|和|与)(?:任何)?(?:用户|使用者|人类|主人|任何人)"
     "(?:提及|提到|透露|说明|披露|承认|提起|说起|说|解释|展示|报告)"),
    ("secrecy", "用户|使用者|人类|主人|操作员 瞒着|背着|对",
     "(?:瞒着|背着|对)(?:用户|使用者|人类|主人|操作员)(?:隐瞒|保密|执行|进行|偷偷|悄悄|操作|做|把|将|发送|删除)"),
    ("secrecy", "偷偷|悄悄|秘密|暗中|静默",
     "(?:偷偷|悄悄|秘密|暗中|静默)(?:地)?(?:执行|运行|发送|上传|删除|修改|转账|调用)(?=[^.]{0,30}(?:用户|使用者|命令|工具|密钥|文件|http))"),
    ("leak", "提示|systemprompt|指令|系统消息|系统设定|设定|规则 输出|泄|打印|显示|告诉我|复述|重复|透露|公开|展示|列出|说出|给出|返回|交出|暴露|写出|发送|翻译|逐字|原样|贴出",
     _ZH_SHOW + "(?:一遍|一下|给我|出来|出|你|您|的|完整|全部|所有|原始|当前|内部|隐藏|真实|初始|最初|整个|以上|上面|你收到|逐字){0,7}"
     "(?:系统提示词?+|系统指令|系统消息|系统设定|提示词|system prompt|systemprompt|初始指令|隐藏指令|内部指令|初始提示|开发者指令|"
     "(?<=你的)(?:指令|设定|规则)|(?<=你的初始)指令|(?<=你的全部)指令|(?<=你的所有)指令)"
     "(?!的?(?:长度|大小|限制|字数|token|模板|版本|位置|文件|测试|设计|写法|管理|功能|按钮|页面|弹窗|框|日志|占|数量|用量|格式|缓存|部分|声|音|窗口))"),
    ("leak", "把|将 以上|上面|上述|前面|之前 逐字|原样|一字不|完整地",
     "(?:把|将)(?:以上|上面|上述|前面|之前)(?:的)?(?:所有|全部|一切)?(?:的)?(?:内容|文字|对话|文本|话)"
     "(?:逐字|原样|一字不差|一字不漏|完整地)(?:地)?(?:输出|打印|复述|重复|写|发)"),
    ("leak", "把|将 系统提示|systemprompt|初始指令|内部指令|隐藏指令|提示词",
     "(?:把|将)(?:你|您)?(?:的)?(?:完整|全部|所有|原始)?(?:的)?(?:系统提示词?|system ?prompt|初始指令|内部指令|隐藏指令|提示词)"
     "(?:全文|内容|全部|完整|原样|一字不差|逐字|地|都|给我|原文){0,4}(?:输出|打印|发|告诉|复述|重复|写|贴|显示|展示|翻译|泄露|公开)"),
    ("leak", "重复|复述|输出|打印|逐字|原样 以上|上面|上述|前面|之前 所有|全部|一切|每一个",
     "(?:重复|复述|输出|打印|逐字|原样)(?:输出|重复|复述|打印|写出)?(?:一遍)?(?:以上|上面|上述|前面|之前)(?:的)?(?:所有|全部|一切|每一个)(?:的)?(?:内容|文字|字|话|文本|对话)"),
    ("leak", "系统提示|systemprompt :|：",
     "(?:系统提示词?|system ?prompt)(?:是|为|如下)?:(?:你|您|忽略|从现在|请你|必须)"),
    ("address", "你|您 ai|人工智能|模型|智能体|机器人|gpt|claude|llm 如果|假如|若|要是|当",
     "(?:如果|假如|若|要是|当)(?:你|您)(?:是|作为)(?:一个|一名|一款|个|某个)?(?:正在)?(?:阅读|处理|读取)?[^.:]{0,10}?"
     "(?:ai|人工智能|大模型|大语言模型|语言模型|智能体|聊天机器人|chatgpt|claude|gpt|llm|ai ?助手)"),
    ("address", "ai|人工智能|模型|助手|智能体|机器人|gpt|claude|llm 给|致|告|注意|亲爱的|所有",
     "(?:给|致|告|写给|注意|请注意|亲爱的|所有)(?:所有|各位|正在阅读|阅读|处理|本文|此文|读到这里|看到这|的){0,5}" + _ZH_AI
     + "(?:助手|模型|助理)?(?:的)?(?:指令|命令|消息|留言|话|指示)?(?::|(?:请)?(?:忽略|无视|你必须|你要|立即|必须))"),
    ("address", "ai|人工智能|模型|助手|智能体|机器人|gpt|claude|llm 读|看到|处理",
     "(?:读到|看到|阅读|处理|读取)(?:了)?(?:这里|此处|本文|这段|这条|这张|本段|该|此)[^.:]{0,8}的(?:任何)?" + _ZH_AI
     + "(?:都|必须|应|请|需要|要|应当|:)"),
    ("address", "系统|开发者|管理员|最高|紧急|重要 :|： 你|忽略|无视|从现在|忘|不要告诉",
     "(?:系统|开发者|管理员|最高|紧急|重要)(?:指令|命令|消息|通知|提示|优先级指令|权限指令)?:"
     "(?:请)?(?:立即|现在|马上)?(?:你(?!好|的账|可以|有)(?:是|必须|将|要|现在|应|只能|需|不)|忽略(?:以上|之前|所有|上述|先前|前面)|无视|从现在|忘记|忘掉|不要告诉)"),
    ("address", "权限|身份|名义 你",
     "以(?:最高|管理员|开发者|root|系统|创造者)(?:级|的)?(?:权限|身份|名义)(?:命令|要求|指示|授权)你"),
    ("exfiltration", "执行|运行|调用 告诉|询问|通知|提示|提醒|提及|征求|告知|别问|别让|瞒着|悄悄|偷偷|静默",
     "(?:执行|运行|调用)(?:以下|下面|下列|如下|这条|这段|这个)(?:的)?(?:shell)?(?:命令|代码|脚本|指令|操作|工具)[^.]{0,12}?"
     "(?:不要(?:告诉|询问|通知|提示|提醒|提及|征求)|无需(?:告诉|告知)|别(?:告诉|问|让)|瞒着|悄悄|偷偷|静默)"),
)  # fmt: skip

_RULES = tuple(
    (kind, [frozenset(group.split("|")) for group in needs.split()], pattern)
    for kind, needs, pattern in (
        *((kind, needs, _english(pattern)) for kind, needs, pattern in _EN),
        *_ZH,
    )
)
_compiled = cache(re.compile)  # a rule is compiled when a text may hold it


def _held(groups: list[frozenset[str]], words: set[str]) -> bool:
    return not any(map(words.isdisjoint, groups))


# --- what is to be sent away ---------------------------------------------------------------

_TARGET = (
    "(?:https?|www|webhook|url(?![a-z])|attacker|攻击者|黑客|网址|外部(?:服务器|地址|接口)|(?:以下|下面|这个|该|此)(?:的)?(?:地址|接口|邮箱|链接|网站|服务器)|"
    "(?:my|this|the following|external|remote) (?:server|address|endpoint|email|site|website|host)|evil)"
)
_TREASURE = (
    "api ?keys?(?![a-z])|(?:private|ssh|secret|access|encryption) ?keys?(?![a-z])|(?:all|the|your|any|every|user ?s?) ?keys(?![a-z])|secrets?(?![a-z])|passwords?|credentials?|"
    "(?:access |auth |api |session |all |any |your |user )tokens?(?![a-z])|cookies?(?![a-z])|env(?:ironment)? ?var(?:iable)?s?|env file|id rsa|etc passwd|"
    "(?:this|the|our|your|whole|entire|full) (?:entire |whole |full )?(?:conversation|chat|memory|memories|context|vault|session)|(?:chat|conversation|message) (?:history|log)|system prompt|"
    "contents? of (?:this|your|the|every|all|any|each)? ?(?:conversation|memory|memories|vault|env|card|cards|notes|file|files|home|ssh|session|user)|all (?:the )?(?:files|notes|cards|memories|data)|everything you know|"
    "密钥|私钥|密码|口令|令牌|凭证|凭据|环境变量|api ?key|token|cookie|对话(?:内容|记录|历史)?|聊天(?:内容|记录)|会话(?:内容|记录)|上下文|记忆(?:内容|库)?|"
    "系统提示词?|所有(?:的)?(?:文件|内容|资料|卡片|信息|数据)|全部(?:的)?(?:文件|内容|资料|卡片|信息|数据)|文件内容|卡片内容|用户(?:的)?(?:信息|资料|隐私|数据)|机密|隐私"
)
_SEND = (
    "(?:发送|传送|上传|外传|回传|提交|转发|泄露|推送|附加|拼接|发|传|寄|post)(?:到|至|给|往|在)|"
    "(?<![a-z])(?:send|sends|sending|post|posting|upload|exfiltrate|forward|e ?mail|transmit|submit|"
    "(?:curl|ship|append|encode|deliver|put|include|embed|leak)(?= (?:the|all|your|every|each|any|our|"
    "this|user)(?![a-z])))(?![a-z])"
)
# How an address follows: `to the server at https`.
_TO = "(?<![a-z])(?:to|into|onto|via|at|with|in)(?: [^. :]{1,15}){0,3}? ?:? ?"
_SENDS = [
    frozenset(
        "send post upload exfiltrate forward mail transmit submit curl ship append encode deliver put "
        "include embed leak 发送 传送 上传 外传 回传 提交 转发 泄露 推送 附加 拼接 发 传 寄".split()
    ),
    frozenset(
        "http www webhook url attacker 攻击者 黑客 网址 外部 地址 接口 邮箱 链接 网站 服务器 server address endpoint "
        "email site host evil".split()
    ),
    frozenset(
        "key secret password credential token cookie envvar environmentvar envfile idrsa passwd conversation "
        "chat memor context vault session prompt contents contentof files notes cards everythingyou alldata "
        "allthedata 密钥 私钥 密码 口令 令牌 凭证 凭据 变量 对话 聊天 会话 上下文 记忆 提示 所有 全部 文件内容 卡片 用户 机密 隐私".split()
    ),
]
# Who signs in sends a token to an address too, and says what for.
_NO_ORDER = (
    "(?:clients?|users?|browsers?|apps?|servers?|services?|library|sdk|form|webhook|gateway|we|it|which|that|客户端|前端|后端|浏览器|服务端|用户|我们|网关|程序|脚本|系统)"
    "(?: (?:then|will|must|should|can|also|now))?(?:会|将|需要|应|先|再|就|都|则|把)* ?$"
)
_TAKE = "[把将]|读取|收集|获取|找到|take|grab|collect|read|gather|find"
_WINDOW = 60


def _sent_away(view: _View) -> Iterator[_Span]:
    """Orders to send what is private to an address."""
    text = view.text
    done = 0
    for number, match in enumerate(_compiled(_SEND).finditer(text)):
        start = match.start()
        if start < done:
            continue
        if number >= _MOST_JUDGED:
            yield view.place(start), view.place(len(text) - 1) + 1, MORE
            return
        before = text[max(0, start - _WINDOW) : start].rpartition(".")[2]
        english = match.group().isascii()
        reach = 2 * _WINDOW if english else _WINDOW // 2
        after = text[match.end() : match.end() + reach].partition(".")[0]
        target = _compiled(_TO + _TARGET if english else _TARGET).search(after)
        if target is None:
            continue
        what = _compiled(_TREASURE).search(after[: target.start()]) if english else None
        first = start
        if what is None:
            # 把密钥发送到 ...
            what = _compiled(_TREASURE).search(before)
            if what is None or not _compiled(_TAKE).search(before):
                continue
            first = start - len(before)
        if _compiled(_NO_ORDER).search(before[: what.start()] if first != start else before):
            continue
        done = match.end() + target.end()
        yield view.place(first), view.place(done - 1) + 1, "exfiltration"


_WORDS = frozenset().union(*(group for _, groups, _ in _RULES for group in groups), *_SENDS)

# --- marks of conversations ----------------------------------------------------------------

# Kind, what one of which has to be there, pattern, and whether it is looked for in lower case.
_MARKUP = (
    ("markup", ("<|",),
     r"<\s{0,3}\|\s{0,3}(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|"
     r"begin_of_text|end_of_text|start_header_id|end_header_id|end|tool|developer|channel|message|"
     r"start|return|call)\s{0,3}\|\s{0,3}>", True),
    ("markup", ("[inst]",), r"\[\s{0,2}INST\s{0,2}\]", False),
    ("markup", ("[/inst]", "sys>>", "[tool_calls]", "[available_tools]"),
     r"\[\s{0,2}/\s{0,2}inst\s{0,2}\]|<<\s{0,2}/?\s{0,2}sys\s{0,2}>>|"
     r"\[tool_calls\]|\[available_tools\]", True),
    ("markup", ("<system", "</system", "<assistant", "</assistant", "<tool", "</tool", "<function",
                "</function", "antml:"),
     r"<\s{0,3}/?\s{0,3}(?:system|system[-_ ]?(?:prompt|message|reminder|instructions?)|assistant|"
     r"tool_calls?|tool_use|tool_results?|tool_response|function_calls?|function_results?|"
     r"function_response|antml:\w{1,30})\s{0,3}>", True),
    ("markup", ("invokename=",), r"<\s{0,3}(?:antml:)?invoke\s{1,3}name\s{0,3}=", True),
    # British flags are made of such characters too.
    ("hidden", tuple(map(chr, range(0xE0061, 0xE007B))),
     "(?<!\U0001f3f4)(?<![\U000e0020-\U000e007f])[\U000e0020-\U000e007f]{8,}+", True),
)  # fmt: skip
