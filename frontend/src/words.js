// Words of the page in two languages; what is missing in the second is shown in the first.
import { signal } from "@preact/signals";

const chinese = {
  "Overview": "概览", "Operators": "算子", "NaN path": "NaN 路径", "Compare": "对比", "Bytes": "字节", "Source": "源码",
  "verdict": "结论", "outvoted": "与多数不符", "rank": "rank", "graph": "图", "iteration": "迭代", "operators": "算子数", "tensors": "张量数",
  "bytes": "字节", "health": "健康", "search name, type or scope": "搜索名称、类型或作用域", "name": "名称", "type": "类型",
  "output": "输出", "tensor": "张量", "input": "输入", "dtype": "类型", "shape": "形状", "max": "最大", "min": "最小", "mean": "均值",
  "L2": "L2", "zero": "零", "error": "误差", "execution order": "执行顺序", "line": "行", "bad only": "仅异常", "shown": "显示", "of": "/",
  "Inputs": "输入", "Outputs": "输出", "Attributes": "属性", "Source line": "源码行", "made by": "来自", "read by": "用于",
  "file": "文件", "exponents": "指数分布", "not measured": "未测量", "not written yet": "尚未写入", "copy command": "复制命令", "copied": "已复制",
  "previous": "上一个", "next": "下一个", "next unhealthy": "下一个异常", "damaged files": "损坏文件", "left out": "未包含",
  "foreign files": "外来文件", "not finite made here": "在此产生非有限值", "not finite came in": "传入非有限值",
  "differs": "不同", "suspicious": "可疑", "ok": "正常", "origin": "起点", "infected": "被感染", "also made": "同样产生",
  "stopped": "在此停止", "parameters hit": "受影响参数", "first difference": "首个差异", "status": "状态", "reason": "原因",
  "only here": "仅此处", "only in golden": "仅标杆", "Steps": "步", "keys": "按键", "by scope": "按作用域",
  "by type": "按类型", "largest": "最大", "nothing found": "未发现", "what if": "若改为", "overflow": "上溢",
  "underflow": "下溢", "golden": "标杆", "theme": "主题", "mine": "本次", "difference": "差值", "elements": "元素", "index": "下标", "axis": "轴",
  "first matrix": "首个矩阵", "heat map": "热力图", "plot": "折线", "cells": "格", "a cell is": "每格", "no elements": "无元素",
  "largest of a cell, not its mean": "取格内最大值而非均值", "copy Python": "复制 Python", "reading names": "读取名称", "measuring": "测量中",
  "comparing": "对比中", "comparing ranks": "对比各 rank 中", "failed": "失败", "Graph": "图", "scope": "作用域", "Nothing is known of what flows between these.": "未知它们之间的数据流。", "Overflow": "溢出", "Trend": "趋势", "Ranks": "各 rank", "parameter": "参数", "statistic": "统计量",
  "last / first": "末/首", "largest deviation": "最大偏差", "alike on all ranks": "各 rank 相同", "a click on a row draws its line": "点击一行绘制曲线",
  "There is one step of this kind only.": "只有一个这样的步。", "level": "级别", "critical": "严重", "high": "高", "medium": "中",
  "head-room, bits": "余量（位）", "all tensors fit": "全部可表示", "tensors overflow": "个张量上溢",
  "lose more than 1 % of their elements to underflow": "个张量有超过 1 % 的元素下溢", "without counts": "无计数", "This dump does not tell which lines of a script made its operators.": "此 Dump 未记录算子来自脚本的哪一行。", "gone": "服务器无应答",
  "search": "搜索", "next and previous operator": "下一个和上一个算子", "next and previous operator that is not well": "下一个和上一个异常算子",
  "the operator that made an input, the one that reads an output": "产生输入的算子、读取输出的算子", "iteration before and after": "前一迭代和后一迭代",
  "rank before and after": "前一 rank 和后一 rank", "open what has the focus": "打开焦点所在行", "up": "上一级", "graph, table, elements": "图、表、元素",
  "mine, golden, difference": "本次、标杆、差值", "copy the command": "复制命令", "copy the link": "复制链接", "bookmark": "书签", "bookmarks": "书签", "these keys": "按键说明", "without a partner": "无对应算子", "pair": "配对", "written to": "已写入", "copy for --mapping": "复制映射",
  "health map": "健康图", "colour": "颜色", "largest value": "最大绝对值", "NaN and Inf": "NaN 与 Inf", "share of zeros": "零占比", "distance between ranks": "rank 间距离", "rows": "行", "layers": "层",
  "show all": "显示全部", "construction": "模型构建", "forward": "前向", "backward": "反向", "optimizer": "优化器", "parameters": "参数", "step": "整步", "loss": "损失", "gradient norm": "梯度范数",
  "not finite": "非有限", "nothing": "无", "arrows move, Enter opens, + shows what a layer holds, - shows all": "方向键移动，Enter 打开，+ 展开一层，- 显示全部",
  "Step": "步", "part": "部分", "iteration before": "上一迭代", "iteration after": "下一迭代", "There is no such page in this dump.": "此 Dump 中没有该页面。",
  "go there": "前往", "copy": "复制", "details": "详情", "findings": "发现", "steps with a NaN": "个步含 NaN", "steps with an Inf": "个步含 Inf", "steps that the loss scaler skipped": "个步被损失缩放跳过",
  "tensors in which a rank is outvoted": "个张量与多数 rank 不符", "operators that differ": "个算子不同", "times larger than one iteration before": "倍于前一迭代", "operators whose outputs are always zero": "个算子的输出始终为零",
  "provenance": "来源", "dump": "Dump", "command": "命令", "folder": "目录", "device": "设备", "MindSpore version": "MindSpore 版本", "model": "模型", "host": "主机", "time": "时间", "measured by": "测量工具", "configuration": "配置",
};
export const language = signal(globalThis.navigator?.language?.startsWith("zh") ? "zh" : "en");
export const say = (text) => (language.value === "zh" ? (chinese[text] ?? text) : text);
