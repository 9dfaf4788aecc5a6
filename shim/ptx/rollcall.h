/*
 * rollcall.h: lanes that wait for their whole warp at different places of the text, or not equally
 * often.
 *
 * On the GPU an instruction for the lanes of a mask goes on without those that have exited. Where
 * nobody can tell from the text which lanes those are (uniform.h), nor count them as they leave
 * (leavers.h), a twin asks each time: in front of an instruction with the mask of a whole warp its
 * lanes vote who is there (vote.sync.ballot), and their answer takes the mask's place. Lanes whose
 * virtual block has ended go on voting no, until the whole warp has ended.
 *
 * Why that is right: by the PTX ISA lanes that wait with one mask meet wherever in the text they
 * are, as long as they wait with the same instruction. All votes are one and the same instruction,
 * with one mask, and each lane that has not ended comes to one before each meeting for which the
 * original would wait for it; so the nth vote is that before the nth meeting, and who is there is
 * who has not exited in the original. A mask is looked at when the twin runs, for a register may
 * hold that of the whole warp, too. Masks of parts of a warp need a proof as before (hazards.c);
 * a lane that votes is in none of them.
 *
 * Where barriers are votes, too (hazards.h), a lane that comes to one says in front of it that it
 * is not at a meeting. When nobody is, those that have ended vote at the barrier, and then go on
 * here.
 *
 * Before sm_70 the lanes that meet must stand at one place of the text.
 */
#pragma once

#define ROLLCALL_SM_MIN 70

/* With a 0 behind it: the register that holds the mask of those who are there. */
#define ROLLCALL_MASK "%sbeet_there"
