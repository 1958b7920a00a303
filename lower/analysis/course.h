// The course of a CUDA program: blocks as the program goes through them, with ifs, switches and
// loops in their forms, as a list of events. Pass cuda-waits makes nodes of it, codegen/cuda prints
// it. Behind the plan and cuda-steps. Leaves the IR as it was. Uses what else is in lower/analysis.
#ifndef PDCC_LOWER_ANALYSIS_COURSE_H
#define PDCC_LOWER_ANALYSIS_COURSE_H

#include "ir/core/core.h"

// How the rounds of a loop are done. Counted ones never look at a condition.
typedef enum LoopForm {
	LOOP_KERNEL, // in one kernel, or inside of such a loop
	LOOP_NODE,   // a conditional node
	LOOP_COUNTED_KERNEL,
	LOOP_COUNTED_NODE,
	LOOP_COUNTED_UNROLLED // rounds behind each other in the graph around
} LoopForm;

typedef struct CourseLoop {
	const Op *enter, *test, *back; // the branch that comes from outside; that at the end of the
	                               // head; that which goes back there
	LoopForm form;
	int counter;   // its number, where rounds are counted
	int condition; // of a node: its first word
} CourseLoop;

typedef enum CourseKind {
	COURSE_OP,    // that is no branch, and does not just count
	COURSE_EDGE,  // what branch `op` does on the way to its successor `part`
	COURSE_LOOP,  // begins; the head of one that is not counted comes next
	COURSE_TEST,  // the head is over: the first round comes next
	COURSE_AGAIN, // of a conditional node: the head is over behind a round, too
	COURSE_COUNT, // at the end of a round of a conditional node that counts: one less is left
	COURSE_LOOP_END,
	COURSE_EITHER, // a loop that is one kernel where sizes of a run make it little: that comes next
	COURSE_ELSE,   // and else this
	COURSE_EITHER_END,
	COURSE_CHOICE, // an if or a switch, which has a part for each successor
	COURSE_PART,
	COURSE_PART_END,
	COURSE_CHOICE_END,
	COURSE_KINDS
} CourseKind;

typedef struct CourseEvent {
	CourseKind kind;
	bool in_kernel; // of a choice: it is inside of a loop that is one kernel
	int part;
	int condition; // of a choice that is a node: its first word
	const Op *op;
	const CourseLoop *loop;
} CourseEvent;

typedef struct Course {
	int n, cap;
	CourseEvent *events;
	int ncounter;   // all of them
	int ncondition; // words that say which parts of conditional nodes run: two for each two parts
	const char *error; // why there is no course, and where that was seen
	const Op *at;
} Course;

// False, with `error`, where blocks do not nest.
bool course_find(Arena *a, const Op *module, Course *out);

#endif
