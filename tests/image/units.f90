! An image while units are open: formatted, unformatted, scratch, internal.
program units
  use iso_c_binding
  implicit none
  interface
    function taker_take() bind(c, name='taker_take')
      import :: c_int
      integer(c_int) :: taker_take
    end function
  end interface
  real(8), allocatable :: a(:)
  integer(c_int) :: restored
  integer :: i, k
  real(8) :: x
  character(40) :: text

  allocate(a(100000))
  do i = 1, size(a)
    a(i) = sqrt(real(i, 8))
  end do
  open(10, file='formatted', status='replace')
  open(11, file='unformatted', form='unformatted', status='replace')
  open(12, status='scratch')
  do i = 1, 50
    write(10, '(i5)') i
    write(11) a(i)
    write(12, '(i5)') i * 2
  end do
  rewind(12)
  do i = 1, 10
    read(12, *) k
  end do
  restored = taker_take()
  read(12, *) k
  if (k /= 22) stop 2
  do i = 51, 100
    write(10, '(i5)') i
    write(11) a(i)
  end do
  rewind(10)
  rewind(11)
  do i = 1, 100
    read(10, *) k
    read(11) x
    if (k /= i .or. x /= a(i)) stop 3
  end do
  if (sum(a) < 1) stop 4
  text = 'went on'
  if (restored /= 0) text = 'restored'
  print '(a)', trim(text)
end program
