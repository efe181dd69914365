"""Words that say nothing about what a turn is about, in the form that the gate compares: NFKC,
Simplified Chinese, no case.

EMPTY words carry a conversation (`go on`, `继续`) or a sentence (`the`, `这个`). WEAK words name
what every session has (`memory`, `代码`): they tell something only where a question is asked.
"""

EMPTY_WORDS = frozenset(
    # Grammar.
    "a about above actually after again all almost along already also although always am among an "
    "and another any anyone anything anyway are aren around as at away back be because been before "
    "being below best better between both but by came can cannot come comes coming could couldn did "
    "didn different do does doesn doing don done down during each either else enough etc even ever "
    "every everyone everything few first for from further get gets getting give given gives go goes "
    "going gone got gotten had hadn has hasn have haven having he her here hers him his how however "
    "i if im in instead into is isn it its itself ive just keep keeps kept kind know known knows "
    "last later least less let lets like ll lot lots made make makes making many may maybe me mean "
    "means might mine more most much must my myself need needs neither never no nobody none nor not "
    "nothing now of off often on once one ones only onto or other others our ours out over own part "
    "per perhaps put quite rather re really right same second see seem seems seen several shall she "
    "should shouldn since so some somehow someone something sometimes soon still such take taken "
    "takes taking than that thats the their theirs them then there theres these they thing things "
    "think third this those though three through thus till time times to too toward try two under "
    "until up upon us use used uses using ve versus very via vs wanna want wanted wants was wasn way "
    "ways we well went were weren what whatever whats when whenever where wherever whether which "
    "while who whole whom whose why will with within without won would wouldn yet you your yours "
    "yourself ya u ur "
    # What carries a conversation.
    "absolutely accept accepted agree agreed ahead alright amazing answer answers apologies approve "
    "approved ask awesome bad begin brilliant bye careful carry cheers clarify clear clearly "
    "completely confirm confirmed continue continues continuing cool correct course danke dear "
    "definitely detail details do dont easy elaborate end enjoy exactly example examples excellent "
    "expand explain explanation fair fantastic fine finish finished fix fixed fixes follow forget "
    "forward friend full fyi gonna good goodbye gotcha great guess guys ha hah haha happen happened "
    "happening happens happy hello help helped helpful helps hey hi hmm hold hooray hope huh idea "
    "ideas idk imo indeed interesting job k kk kindly lgtm lol long longer look looking looks "
    "love lovely make merci might mind moment more move mm mmm nah naw nay neat nevermind next nice "
    "nope np nvm of oh ok okay oki okie okey omg ooh oops option options pardon pause perfect "
    "perfectly plain please pls plz point points possible pretty proceed quick quickly ready "
    "reason reasons redo regards rephrase repeat reply respond response restart resume retry revert "
    "rewrite roger rollback say says seriously ship short shorter show simple simpler simply small "
    "solid sorry sound sounds start started stay step steps stop stuff suggest suggestion "
    "suggestions summarise summarize summary super sure surely sweet talk tell tells thank thanks "
    "thankyou thats thought thoughts thx tks today tomorrow too top totally true truly trying ty tyvm "
    "uh uhh um umm understand understood undo unsure update updated wait waiting wdyt weird welcome "
    "whoa word words work worked working works worries wow wrong yay yea yeah yep yes yess yo yup "
    "yw asap btw sir mate man dude bro alternatively basically certainly currently eventually "
    "finally generally hopefully immediately little normally obviously probably problem problems question "
    "questions slowly specifically usually change changed changes adjust improve tweak polish modify "
    "english chinese language english french german simplify cancel rest minute minutes sense trust wish morning evening night "
    "afternoon weekend care guys folks case cases bit pieces piece side default "
    "anyways nearly exact exactly correctly wrongly properly nicely aha aah ah ahh aww bravo "
    "congrats congratulations cya ciao hola adios hiya yay whee wohoo woohoo yikes ugh argh damn shit fuck "
    "heck hell jeez gosh lmao rofl haha hehe heh hihi xd omw brb afk rn tbh ikr smh imho iirc afaik ftw "
    "okayy alrighty righto yessir affirmative negative acknowledged ack noted copy sorted settled "
    "deal bingo boom voila tada smart clever genius impressive incredible difference differences choose pick matter matters four five six seven eight nine ten "
    "skip reject prefer depends depend mistake mistakes appreciated appreciate meaning previous tysm "
    "deeper deep concise brief briefly formal casual friendly professional hurry sup aight bet dope kudos "
    "gracias por favor double wonderful terrific superb fabulous "
    "delightful marvelous beautiful elegant clean fast slow faster slower hard harder easier ".split()
)

WEAK_WORDS = frozenset(
    "memory memories context contexts code codes file files folder document documents doc docs info "
    "information content data project projects task tasks feature features function logic version "
    "message messages chat conversation session model output input result results progress status "
    "state plan plans todo bug bugs error errors issue issues failure warning test run runs running "
    "commit commits push pull merge save build rebuild compile execute apply add remove delete create "
    "write read open close check review refactor optimize optimise debug search find remember "
    "recall history note notes yesterday week month recently recent left leave call fail fails failed failing broken format bullet bullets table paragraph "
    "sentence title tone verify validate generate regenerate rerun feedback compare recommend restore decide decided".split()
)

# Several characters each. Single ones are in EMPTY_CHARACTERS, which end a word, and in
# LIGHT_CHARACTERS, which may be part of one.
EMPTY_PHRASES = frozenset(
    # Chinese: what carries a conversation.
    "继续 接着 接着来 往下 往下说 下去 说下去 讲下去 写下去 做下去 好的 好吧 好呀 好啊 好嘞 好滴 好哒 好了 行吧 行啊 可以 "
    "可以了 可以吗 没问题 没事 没关系 没错 没毛病 没有了 没有 没了 确认 确定 确实 当然 当然可以 同意 赞成 批准 通过 "
    "通过了 收到 收到了 明白 明白了 了解 了解了 知道 知道了 懂了 清楚 清楚了 理解 理解了 原来如此 原来 这样 那样 这样吧 就这样 "
    "这么 那么 就像 好像 比如 比如说 例如 譬如 举例 举个例子 例子 一样 谢谢 多谢 谢了 感谢 非常感谢 辛苦 辛苦了 麻烦 "
    "麻烦你 拜托 劳驾 请问 请教 对不起 抱歉 不好意思 你好 您好 大家好 早上好 下午好 晚上好 晚安 早安 再见 拜拜 哈喽 在吗 "
    "不错 很好 太好了 太棒了 真棒 很棒 棒极了 完美 厉害 牛逼 优秀 漂亮 满意 喜欢 给力 点赞 加油 恭喜 祝好 哈哈 呵呵 嘿嘿 嘻嘻 "
    "是的 是啊 是吗 是吧 是不是 不是 不是吧 不对 对的 对吗 对吧 对不对 不行 不要 不用 不用了 不必 不能 不会 不了 不可以 不同意 "
    "不太对 不知道 不清楚 不明白 不懂 不确定 不一定 不理解 算了 罢了 随便 随你 随意 都行 都可以 都好 你定 你决定 决定 看着办 "
    "等等 等一下 等一等 稍等 稍后 等会 等会儿 停下 停一下 停止 暂停 打住 取消 撤销 撤回 回退 回滚一下 退回 恢复一下 重来 重做 "
    "重新 重新来 重新开始 重写 重写一下 再来 再来一次 再来一遍 再来一个 再试 再试试 再试一次 再说 再说说 再说一遍 再讲讲 再看看 "
    "再想想 再改改 再改 再写 再问 试试 试试看 试一下 测试一下 测试下 验证一下 检查一下 看看 看一下 看下 看一看 瞧瞧 听听 想想 想一下 说说 "
    "说一下 说说看 讲讲 讲一下 聊聊 谈谈 问问 改改 改一下 改下 修改 修改一下 修一下 修复一下 修正 调整 调整一下 优化 优化一下 "
    "完善 完善一下 改进 改进一下 润色 精简 精简一下 简化 简化一下 补充 补充一下 展开 展开说说 详细 详细点 详细一点 详细说说 具体 "
    "具体点 具体说说 具体来说 简单 简单点 简短 简短点 总结 总结一下 概括 概括一下 归纳 翻译一下 解释 解释一下 说明 说明一下 介绍一下 "
    "分析一下 处理一下 整理一下 更新一下 回答 回复 告诉 告诉我 帮忙 帮助 帮我 帮我看看 帮一下 给我 让我 请你 麻烦您 需要 想要 希望 "
    "开始 开始吧 动手 动手吧 做吧 干吧 来吧 走吧 走起 上吧 搞定 搞起 弄一下 搞一下 做一下 写一下 跑一下 用一下 "
    "完成 完成了 结束 结束了 好了吗 完了 完了吗 做完 做完了 搞定了 弄好了 成功 失败 成了 可行 行不行 能不能 可不可以 "
    "会不会 要不要 有没有 是否 能否 可否 下一步 上一步 第一步 第二步 第三步 下一个 上一个 下一条 上一条 第一个 第二个 第三个 最后一个 另一个 "
    "前者 后者 两个 两者 全部 全都 都要 所有 其他 其它 其余 别的 另外 还有 还是 或者 或是 以及 并且 而且 但是 不过 可是 然后 然后呢 "
    "接下来 后来 最后 首先 其次 于是 因此 所以 因为 由于 如果 假如 要是 虽然 即使 除非 只要 只有 就是 也是 都是 算是 可能 也许 大概 "
    "应该 必须 一定 肯定 当前 目前 现在 刚才 刚刚 之前 之后 以前 以后 前面 后面 上面 下面 上述 以上 以下 这里 那里 这边 那边 里面 外面 "
    "这个 那个 这些 那些 这种 那种 这次 那次 这样的 那样的 每个 某个 各个 任何 自己 我们 你们 他们 咱们 它们 大家 别人 人家 "
    "一下 一点 一些 一个 一次 一遍 一会 一会儿 一起 一直 一边 有点 有些 有的 很多 许多 不少 几个 多个 非常 特别 十分 比较 更加 更多 "
    "最好 尽量 尽快 马上 立刻 赶紧 赶快 快点 快一点 慢点 慢慢 直接 顺便 顺带 其实 毕竟 反正 到底 究竟 终于 已经 正在 曾经 "
    "什么 什么意思 什么样 什么时候 为什么 为啥 为何 凭什么 怎么 怎么了 怎么办 怎么样 怎么说 怎么做 怎么回事 怎样 如何 何时 何处 何必 "
    "在哪 在哪里 在哪儿 放在哪 放在哪里 放哪 放哪里 写在哪 写在哪里 是什么 是谁 是多少 是哪 是哪个 是几 有哪些 有什么 有多少 有几个 要多久 要多少 "
    "哪个 哪些 哪里 哪儿 哪种 哪一个 谁的 多少 多久 多大 多长 几时 啥意思 咋办 咋样 咋了 意思 东西 事情 情况 问题 办法 方法 地方 时候 "
    "时间 感觉 想法 意见 建议 看法 观点 细节 原因 理由 结论 部分 样子 方式 方面 觉得 认为 以为 记得 还记得 看来 看起来 听起来 似乎 "
    "中文 英文 英语 汉语 语言 选项 方向 一种 那就 就行 就好 就按 按照 根据 关于 对于 至于 来说 的话 而已 之类 等等等 照做 照办 "
    "老师 同学 朋友 兄弟 亲爱 今天 明天 对了 话说 说真的 真的 真的吗 真是 果然 居然 竟然 天啊 天哪 哇塞 卧槽 我靠 呜呜 嗯嗯 哦哦 "
    "没意见 没想法 没什么 不客气 客气 合理 靠谱 有道理 道理 好主意 主意 再生成 说得对 说的对 言之有理 赞同 支持 认可 采纳 采用 保留 保持 不变 照旧 "
    "剩下 剩余 余下 不急 别急 别动 着急 老铁 想好 想好了 弄清楚 搞清楚 说清楚 写清楚 讲清楚 再次 同上 如上 如下 照此 依次 "
    "逐个 逐一 逐步 顺序 开工 收工 下班 休息 吃饭 睡觉 困了 累了 耐心 放心 担心 小心 当心 注意 留意 提醒 提醒一下 换句话说 也就是说 "
    "替我 跟我 陪我 听我 相信 信任 开心 高兴 难过 生气 无语 尴尬 震惊 惊喜 期待 重复 重复一遍 复述 复述一遍 改写 改写一下 缩短 "
    "加长 扩写 续写 换种 换成 变成 改成 改为 弄成 写成 做成 有用 没用 有效 无效 管用 好用 能用 不能用 用不了 跑不了 跑不通 跑通 跑通了 "
    "不通 卡住 卡住了 挂了 崩了 坏了 炸了 回到 回去 过来 过去 出来 进去 起来 上来 下来 大致 大体 基本 基本上 总的来说 总之 总而言之 "
    "搞什么 干什么 做什么 什么鬼 干嘛 干啥 咋整 咋弄 怎么弄 怎么搞 怎么改 怎么写 怎么用 怎么会 怎么能 怎么可能 "
    "晓得 晓得了 正确 接受 思路 换个思路 讲细 说细 翻译 翻译成 人话 原样 删掉 去掉 看一眼 一眼 看懂 没看懂 听懂 读懂 太强 重点 说错 搞错 "
    "弄错 写错 看错 改错 做错 听错 记错 搞混 弄混 还行 还好 凑合 一般 一般般 差不多 差点 够了 足够 合适 不合适 必要 没必要 有必要 试过 试过了 "
    "听着 等着 看着 交给你 靠你了 无所谓 没所谓 抓紧 加快 快些 认真 认真点 仔细 仔细点 准确 准确点 严谨 正经 正式 口语 口语化 通俗 通俗易懂 "
    "友好 礼貌 专业 字数 篇幅 精炼 凝练 分点 列出 列一下 列出来 前文 后文 下文 汇总一下 对比一下 比较一下 评价一下 点评 推荐一下 猜猜 猜一下 "
    "计算一下 算一下 核对一下 测一下 讨论一下 商量 商量一下 同步一下 反馈一下 回复我 通知我 叫我 等我 跟着 照着 对着 其中 当中 期间 "
    "解决 解决了 暂时 暂且 还差 差一点 完整 完整版 完整的 省略 别省略 废话 啰嗦 别啰嗦 答案 依据 根据什么 优缺点 优点 缺点 好处 坏处 利弊 区别 差别 差异 "
    "不同 相同 类似 你推荐 你建议 太懂 不太懂 管它 不管 不管它 别管它 先别管 说答案 讲答案 给答案 想要的 要的 "
    # Japanese and Korean.
    "了解です 承知 継続 続けて もう一度 続き 続ける 続行 お愿い 有难う 大丈夫 何故 教えて 说明して 分かりました 了承 "
    "계속 계속해 계속해줘 계속해주세요 계속하세요 계속해서 네 예 응 좋아 좋아요 좋습니다 감사 감사합니다 고마워 고마워요 고맙습니다 "
    "알겠습니다 알겠어 알았어 알겠어요 확인 확인했습니다 다음 다음은 왜 왜요 그래 그래요 그리고 해줘 진행해 진행해줘 진행해주세요 맞아 맞아요 "
    "다시 다시해줘 아니 아니요 아니오 괜찮아요 수고하셨습니다 부탁해 부탁합니다 설명해줘 뭐 뭐야 무엇 어떻게 언제 어디 "
    "누구 그럼 이거 저거 그거 이것 더 조금".split()
)

WEAK_PHRASES = frozenset(
    "重试 恢复 原文 格式 表格 列表 标题 段落 验证 核对 对比 评价 推荐 讨论 反馈 生成 记忆 上下文 代码 文件 文档 资料 内容 信息 数据 项目 任务 功能 函数 逻辑 版本 消息 对话 会话 聊天 模型 输入 输出 结果 进度 进展 "
    "状态 计划 方案 步骤 待办 报错 错误 异常 警告 故障 运行 执行 提交 推送 拉取 合并 保存 构建 编译 重构 调试 删除 添加 增加 新增 "
    "创建 新建 打开 关闭 检查 审查 搜索 查找 检查 历史 记录 笔记 昨天 前天 上周 本周 上个月 最近 上次 上回 메모리 컨텍스트 코드 파일 "
    "记忆库 文件夹 目录".split()
)

# No word goes on past these.
EMPTY_CHARACTERS = frozenset(
    "的了吗呢吧啊呀哦噢喔嗯哈嘛啦咯喽呗哎唉诶欸哇嘿嗨呵嘻我你您他她它们这那是谁啥咋么请"
)

# These may be part of a word, but make none among themselves.
LIGHT_CHARACTERS = frozenset(
    "一二三四五六七八九十两几个百千万零半第次些点遍种条项位段句章节页号步回"
    "不没无别未非有在和与及或而且但却又也还都就才只再更最很太真好挺蛮够可能会要想该应得须必肯敢愿"
    "把被给让叫使对向往从到由于为因以用按照跟同像如若则即便虽然所其之某各每另该此何哪"
    "来去上下进出起过开关回里外中前后左右内间时候先后早晚今明昨日天年月"
    "做作干弄搞改修写读看听说讲问答想试查找跑走停行成完定算拿放加减删换选存取收发用拆装补抄贴点"
    "多少大小长短高低快慢新旧全部整重轻难易对错是否行棒牛赞妙酷冲顶快慢"
    "人事物样子儿头边面法处着过吧呢啊哟嘞滴哒呃额唔哼嘘哦"
)

QUESTION_MARKS = (
    "什么", "怎么", "怎样", "为何", "为啥", "如何", "哪", "谁", "多少", "多久", "多大", "多长", "是否", "能否",
    "是不是", "有没有", "能不能", "会不会", "要不要", "可不可以", "吗", "啥", "咋", "何时", "几个", "几次", "几点",
    "何", "どう", "なぜ", "どこ", "いつ", "どの", "どれ", "ですか", "ますか",
    "뭐", "무엇", "어떻게", "왜", "어디", "언제", "누구",
)  # fmt: skip
QUESTION_WORDS = frozenset("what whats how why where when which who whom whose".split())
QUESTION_STARTS = frozenset("is are was were does did has had".split())

#: What is asked of the memory itself.
DOMAIN_WORDS = frozenset(
    "bm25 rrf mmr fts fts5 ndcg mrr hopfield embedding embeddings rerank reranker reranking recall "
    "tokenizer tokeniser firewall retrieval supersession".split()
)
DOMAIN_PHRASES = (
    "召回链路", "召回率", "召回", "检索", "向量", "倒排", "分词", "重排", "混合检索", "半衰期", "防火墙", "门控", "上下文包",
    "记忆系统", "记忆代理", "context pack", "context window", "half-life", "vector search", "memory system",
)  # fmt: skip

#: Endings of file names.
SUFFIXES = frozenset(
    "py pyi ipynb md markdown mdx rst txt log csv tsv json jsonl yaml yml toml ini cfg conf env lock js "
    "jsx mjs cjs ts tsx vue svelte html htm css scss less c h cc cpp cxx hpp cs java kt kts go mod rs rb php "
    "pl lua r jl swift m mm scala clj ex exs erl hs ml sql db sqlite sqlite3 sh bash zsh fish ps1 bat "
    "cmd xml svg png jpg jpeg gif webp pdf doc docx xls xlsx ppt pptx zip tar gz tgz whl proto graphql tf "
    "dockerfile gradle properties plist pem key crt patch diff bak".split()
)
