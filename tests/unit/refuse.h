/* A system that refuses one of its calls, as an old kernel or the filter of a container does. */
#ifndef UNIT_REFUSE_H
#define UNIT_REFUSE_H

/* From now on this process gets ENOSYS from the system call `number`, for ever: for children that
 * a test forks. Where that is impossible the process exits with code 2. */
void refuse_call(long number);

#endif
