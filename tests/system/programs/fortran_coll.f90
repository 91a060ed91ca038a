! Collectives from Fortran with "use mpi_f08": broadcast, reductions of several
! types and a user-defined operation, gathers, scatters, alltoall, scans, in
! place, non-blocking, on a split communicator, and of a derived type.
module operations
    use mpi_f08
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    implicit none

contains

    ! The larger of the absolute values.
    subroutine largest(invec, inoutvec, n, datatype)
        type(c_ptr), value :: invec, inoutvec
        integer :: n
        type(MPI_Datatype) :: datatype
        integer, pointer :: a(:), b(:)

        if (datatype /= MPI_INTEGER) return
        call c_f_pointer(invec, a, [n])
        call c_f_pointer(inoutvec, b, [n])
        b = max(abs(a), abs(b))
    end subroutine
end module

program fortran_coll
    use operations
    implicit none
    integer, parameter :: sizes(4) = [1, 30, 1000, 40000]
    integer :: me, ranks, failures = 0, all, k

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, me)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    do k = 1, size(sizes)
        call test_reductions(sizes(k))
        call test_moves(sizes(k))
        call test_nonblocking(sizes(k))
    end do
    call test_varying()
    call test_derived()
    call test_split()
    call MPI_Allreduce(failures, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    if (me == 0 .and. all == 0) print '(a)', 'ok fortran_coll'
    ! See finalize_after_pause() in check.h.
    call execute_command_line('sleep 0.2')
    call MPI_Finalize()
    if (all /= 0) stop 1

contains

    subroutine check(what, expected, seen)
        character(len=*), intent(in) :: what
        integer, intent(in) :: expected, seen

        if (expected == seen) return
        failures = failures + 1
        write (0, '(3a,i0,a,i0,a,i0)') 'FAIL ', what, ' rank ', me, ': expected ', expected, &
            ', saw ', seen
    end subroutine

    subroutine test_reductions(n)
        integer, intent(in) :: n
        integer :: a(n), b(n), i, sum_of_ranks
        double precision :: x(n), y(n)
        logical :: flags(2)
        type(MPI_Op) :: op

        sum_of_ranks = ranks * (ranks - 1) / 2
        a = [(me + i, i = 1, n)]
        x = a * 0.5d0
        b = -1
        call MPI_Reduce(a, b, n, MPI_INTEGER, MPI_SUM, ranks - 1, MPI_COMM_WORLD)
        if (me == ranks - 1) &
            call check('reduce', 0, count(b /= [(sum_of_ranks + ranks * i, i = 1, n)]))
        call MPI_Allreduce(x, y, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
        call check('allreduce of doubles', 0, count(y /= [((ranks - 1 + i) * 0.5d0, i = 1, n)]))
        b = a
        call MPI_Allreduce(MPI_IN_PLACE, b, n, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
        call check('allreduce in place', 0, count(b /= [(i, i = 1, n)]))
        call MPI_Scan(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        call check('scan', 0, count(b /= [(me * (me + 1) / 2 + (me + 1) * i, i = 1, n)]))
        call MPI_Exscan(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        if (me > 0) call check('exscan', 0, count(b /= [(me * (me - 1) / 2 + me * i, i = 1, n)]))
        call MPI_Op_create(largest, .true., op)
        a = [(merge(-1, 1, mod(me, 2) == 0) * (me + i), i = 1, n)]
        call MPI_Allreduce(a, b, n, MPI_INTEGER, op, MPI_COMM_WORLD)
        if (ranks > 1) call check('user-defined', 0, count(b /= [(ranks - 1 + i, i = 1, n)]))
        call MPI_Op_free(op)
        call MPI_Allreduce([me == 0, .true.], flags, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD)
        call check('logical and', 0, count(flags .neqv. [ranks == 1, .true.]))
    end subroutine

    subroutine test_moves(n)
        integer, intent(in) :: n
        integer, allocatable :: a(:, :), b(:, :)
        integer :: root, i, s

        allocate (a(n, 0:ranks - 1), b(n, 0:ranks - 1))
        do root = 0, ranks - 1, max(1, ranks - 1)
            b(:, 0) = merge([(root * 1000 + i, i = 1, n)], [(-1, i = 1, n)], me == root)
            call MPI_Bcast(b, n, MPI_INTEGER, root, MPI_COMM_WORLD)
            call check('bcast', 0, count(b(:, 0) /= [(root * 1000 + i, i = 1, n)]))
            a(:, 0) = [(me * 7 + i, i = 1, n)]
            b = -1
            call MPI_Gather(a, n, MPI_INTEGER, b, n, MPI_INTEGER, root, MPI_COMM_WORLD)
            do s = 0, ranks - 1
                if (me == root) call check('gather', 0, count(b(:, s) /= [(s * 7 + i, i = 1, n)]))
                a(:, s) = [(s * 11 + root + i, i = 1, n)]
            end do
            call MPI_Scatter(a, n, MPI_INTEGER, b, n, MPI_INTEGER, root, MPI_COMM_WORLD)
            call check('scatter', 0, count(b(:, 0) /= [(me * 11 + root + i, i = 1, n)]))
        end do
        do s = 0, ranks - 1
            a(:, s) = [(me * 1000 + s * 31 + i, i = 1, n)]
        end do
        call MPI_Alltoall(a, n, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD)
        do s = 0, ranks - 1
            call check('alltoall', 0, count(b(:, s) /= [(s * 1000 + me * 31 + i, i = 1, n)]))
        end do
        call MPI_Allgather(a(1, me), n, MPI_INTEGER, b, n, MPI_INTEGER, MPI_COMM_WORLD)
        do s = 0, ranks - 1
            call check('allgather', 0, count(b(:, s) /= [(s * 1000 + s * 31 + i, i = 1, n)]))
        end do
        call MPI_Reduce_scatter_block(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
        call check('reduce_scatter_block', 0, count(b(:, 0) /= &
            [(500 * ranks * (ranks - 1) + ranks * (me * 31 + i), i = 1, n)]))
    end subroutine

    ! Three operations under way at once.
    subroutine test_nonblocking(n)
        integer, intent(in) :: n
        integer, asynchronous :: a(n), b(n), c(n), d(n, 0:ranks - 1)
        type(MPI_Request) :: requests(4)
        integer :: i, s

        a = [(me * 3 + i, i = 1, n)]
        c = merge([(77 + i, i = 1, n)], [(-1, i = 1, n)], me == 0)
        call MPI_Iallreduce(a, b, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1))
        call MPI_Ibcast(c, n, MPI_INTEGER, 0, MPI_COMM_WORLD, requests(2))
        call MPI_Iallgather(a, n, MPI_INTEGER, d, n, MPI_INTEGER, MPI_COMM_WORLD, requests(3))
        call MPI_Ibarrier(MPI_COMM_WORLD, requests(4))
        call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
        call check('iallreduce', 0, &
            count(b /= [(3 * ranks * (ranks - 1) / 2 + ranks * i, i = 1, n)]))
        call check('ibcast', 0, count(c /= [(77 + i, i = 1, n)]))
        do s = 0, ranks - 1
            call check('iallgather', 0, count(d(:, s) /= [(s * 3 + i, i = 1, n)]))
        end do
    end subroutine

    ! Rank s contributes s + 1 integers.
    subroutine test_varying()
        integer :: counts(0:ranks - 1), starts(0:ranks - 1), a(ranks), i, s
        integer :: b(ranks * (ranks + 1) / 2)

        counts = [(s + 1, s = 0, ranks - 1)]
        starts = [(s * (s + 1) / 2, s = 0, ranks - 1)]
        a = [(me * 100 + i, i = 1, ranks)]
        b = -1
        call MPI_Allgatherv(a, me + 1, MPI_INTEGER, b, counts, starts, MPI_INTEGER, MPI_COMM_WORLD)
        do s = 0, ranks - 1
            call check('allgatherv', 0, &
                count(b(starts(s) + 1:starts(s) + s + 1) /= [(s * 100 + i, i = 1, s + 1)]))
        end do
        a = -1
        call MPI_Scatterv(b, counts, starts, MPI_INTEGER, a, me + 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
        call check('scatterv', 0, count(a(:me + 1) /= [(me * 100 + i, i = 1, me + 1)]))
        call check('behind scatterv', ranks - me - 1, count(a == -1))
    end subroutine

    ! A struct of integers and doubles is broadcast and gathered.
    subroutine test_derived()
        type :: particle
            sequence
            integer :: id, kind
            double precision :: x(3)
        end type
        type(particle) :: mine, all_of_them(0:ranks - 1)
        type(MPI_Datatype) :: plain, resized
        integer(MPI_ADDRESS_KIND) :: at(3), lb, extent
        integer :: s

        call MPI_Get_address(all_of_them(0)%id, at(1))
        call MPI_Get_address(all_of_them(0)%x, at(2))
        lb = 0
        extent = storage_size(mine) / 8
        call MPI_Type_create_struct(2, [2, 3], [lb, at(2) - at(1)], &
            [MPI_INTEGER, MPI_DOUBLE_PRECISION], plain)
        call MPI_Type_create_resized(plain, lb, extent, resized)
        call MPI_Type_commit(resized)
        mine = particle(me, 2 * me, [me + 0.25d0, me + 0.5d0, me + 0.75d0])
        call MPI_Allgather(mine%id, 1, resized, all_of_them(0)%id, 1, resized, MPI_COMM_WORLD)
        do s = 0, ranks - 1
            call check('struct: id', s, all_of_them(s)%id)
            call check('struct: kind', 2 * s, all_of_them(s)%kind)
            call check('struct: x', 0, count(all_of_them(s)%x /= s + [0.25d0, 0.5d0, 0.75d0]))
        end do
        call MPI_Type_free(plain)
        call MPI_Type_free(resized)
    end subroutine

    subroutine test_split()
        type(MPI_Comm) :: half
        integer :: n, rank, total, s

        call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), -me, half)
        call MPI_Comm_size(half, n)
        call MPI_Comm_rank(half, rank)
        call check('half: size', (ranks + 1 - mod(me, 2)) / 2, n)
        call check('half: rank', n - 1 - me / 2, rank)
        call MPI_Allreduce(me, total, 1, MPI_INTEGER, MPI_SUM, half)
        call check('half: sum', sum([(s, s = mod(me, 2), ranks - 1, 2)]), total)
        call MPI_Comm_free(half)
        call check('half: freed', 1, merge(1, 0, half == MPI_COMM_NULL))
    end subroutine
end program
